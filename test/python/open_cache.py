# REQUIRES: x86
# RUN: rm -rf %t && env KJIT_DEVICE=cpu XDG_CACHE_HOME=%t/user %kjit-python %s %t %kjit-cache
"""kjit.open_cache: a program's file of compiled kernels, made by kjit-cache build, saves compilations, also in contexts that are
created later and in forked processes. A file that cannot be used is an error and changes nothing. NumPy has the expected
values."""
import os
import pathlib
import subprocess
import sys
import warnings

import kjit
import numpy as np
from kjit import _state

FOLDER, TOOL = pathlib.Path(sys.argv[1]), sys.argv[2]
FILE = FOLDER / "program.kjit"
x = np.arange(2000, dtype=np.int32) * 7919 % 1013


def build():
    """Compiles what `call` calls. A processor takes the highest level that it has."""
    (FOLDER / "kernels.list").write_text("arg x=arange:i32[2000]\ncall s = reduce(x, max)\ncall o = sort(x)\n")
    levels = [option for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4") for option in ("--target", level)]
    command = [TOOL, "build", FOLDER / "kernels.list", *levels, "--output", FILE]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def call():
    """Returns the number of compilations of two algorithms, which compute the right values."""
    before = kjit.statistics()["compilations"]
    assert int(kjit.reduce(x, "max")) == x.max()
    np.testing.assert_array_equal(np.asarray(kjit.sort(x)), np.sort(x))
    return kjit.statistics()["compilations"] - before


def in_child(function):
    """Runs the function in a forked process, which has contexts of its own."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            function()
            code = 0
        except BaseException as error:
            print(type(error), error, file=sys.stderr)
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, function.__name__


def expect_failure(path, kind, text):
    opened = list(_state._opened)
    try:
        kjit.open_cache(path)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"opened: {path}")
    assert _state._opened == opened


def without_file():
    assert call() >= 2


def with_existing_context():
    kjit.statistics()
    kjit.open_cache(FILE)
    assert call() == 0


def with_later_context():
    os.chdir(FOLDER)
    kjit.open_cache(os.fsencode(FILE.name))
    os.chdir("/")  # the file is known by its absolute path
    in_child(lambda: call() == 0 or sys.exit("compiled"))


def with_bad_files():
    whole = FILE.read_bytes()
    bad = FOLDER / "bad.kjit"
    expect_failure(FOLDER / "none.kjit", kjit.FileError, "No such file")
    for kept, text in ((0, "shorter than its header"), (100, "another size"), (len(whole) - 1, "another size")):
        bad.write_bytes(whole[:kept])
        bad.chmod(0o644)
        expect_failure(bad, kjit.FileError, text)
    bad.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    expect_failure(bad, kjit.FileError, "was not made by")
    bad.write_bytes(whole)
    bad.chmod(0o664)
    expect_failure(bad, kjit.FileError, "other users may write to it")
    folder = FOLDER / "folder"
    folder.mkdir(0o755)
    expect_failure(folder, kjit.FileError, "not a regular file")
    expect_failure("a\0b", ValueError, "null")
    expect_failure(3, TypeError, "")
    assert call() >= 2


def with_file_that_went():
    """The process that forks has opened the file, and its child cannot."""
    gone = FOLDER / "gone.kjit"
    gone.write_bytes(FILE.read_bytes())
    gone.chmod(0o644)
    kjit.open_cache(gone)
    gone.unlink()

    def run():
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            assert call() >= 2
        assert [str(w.message) for w in noted if "gone.kjit" in str(w.message) and w.category is kjit.KjitWarning], noted

    in_child(run)


os.umask(0o022)  # other users cannot write to the files that this program creates
FOLDER.mkdir()
build()
for number, check in enumerate((without_file, with_existing_context, with_later_context, with_bad_files, with_file_that_went)):
    # each check compiles a processor level that another check lacks
    os.environ["XDG_CACHE_HOME"] = str(FOLDER / f"user{number}")
    in_child(check)

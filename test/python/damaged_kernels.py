# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""A damaged file of compiled kernels beside libkjit gives one KjitWarning with the reason, and right results."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

import kjit

PROGRAM = """
import kjit
import numpy
x = numpy.arange(1000, dtype="f4")
for _ in range(2):
    assert kjit.reduce(x, "add") == 499500
    assert kjit.sort(x[::-1].copy()).tolist() == x.tolist()
"""


def find_libraries():
    """Returns the folder of the libkjit that this process uses."""
    kjit.sort([2, 1])
    with open("/proc/self/maps") as maps:
        return next(os.path.dirname(line.split()[-1]) for line in maps if "/libkjit.so" in line)


def run(folder, *options):
    environment = os.environ | {"LD_LIBRARY_PATH": folder, "XDG_CACHE_HOME": "/dev/null"}
    return subprocess.run([sys.executable, *options, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=250)


def main():
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.path.join(scratch, "lib")
        os.mkdir(folder)
        source = find_libraries()
        for path in glob.glob(source + "/libkjit*.so*"):
            shutil.copy2(path, folder, follow_symlinks=False)
        inner = os.path.join(folder, os.path.basename(glob.glob(source + "/kjit-[0-9]*")[0]))
        shutil.copytree(os.path.join(source, os.path.basename(inner)), inner)
        kernels = os.path.join(inner, "kernels.kjit")
        with open(kernels, "wb") as file:
            file.write(b"not compiled code " * 1000)
        for path in (folder, inner, kernels):
            os.chmod(path, 0o755)
        done = run(folder)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("KjitWarning:") == 1, done.stderr
        assert f"KjitWarning: the kernels that ship with kjit are not used: {kernels}: the compiled code is damaged" in done.stderr, done.stderr
        # Python's own filters apply to the warning.
        done = run(folder, "-W", "ignore")
        assert done.returncode == 0 and not done.stderr, done.stderr
        done = run(folder, "-W", "error")
        assert done.returncode == 1 and "kjit.KjitWarning: the kernels that ship with kjit are not used" in done.stderr, done.stderr
        os.remove(kernels)
        done = run(folder)
        assert done.returncode == 0 and not done.stderr, done.stderr


main()

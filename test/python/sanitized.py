# RUN: %python %s %srcdir %builddir %cc
"""The extension under AddressSanitizer. It is compiled again with the sanitizer, and an interpreter that has the
sanitizer loaded runs the tests that pass the most unusual objects. Memory that Python and NumPy keep until the end is
not reported; memory that the extension keeps is. (Separate builds run the library itself under sanitizers.)"""
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile

source, build, compiler = sys.argv[1:4]
TESTS = ("arguments.py", "composed.py", "streams.py", "njit.py", "errors.py", "functions.py", "hostile.py")
package, tools = os.path.join(build, "python", "kjit"), os.path.join(source, "tools")
library = subprocess.run([compiler, "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
if "clang" in os.path.basename(os.path.realpath(shutil.which(compiler) or compiler)):
    library = subprocess.run([compiler, "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True).stdout.strip()
if not os.path.isabs(library):
    print("skipped: the compiler has no shared library of AddressSanitizer")
    sys.exit(0)


def clean(report):
    """Returns the leaks in a report whose memory the extension allocated."""
    blocks = re.split(r"\n(?=(?:Direct|Indirect) leak of)", report)
    return [block for block in blocks[1:] if re.search(r"#[1-3] .*(_kjit\.abi3\.so|tools/python/src/)", block)]


with tempfile.TemporaryDirectory() as folder:
    shutil.copytree(package, os.path.join(folder, "kjit"), ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    target = os.path.join(folder, "kjit", "_kjit.abi3.so")
    sources = [file for part in ("python/src", "plot") for file in sorted(glob.glob(os.path.join(tools, part, "*.c")))]
    flags = ["-std=gnu11", "-g1", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address", "-fPIC", *(f"-I{place}" for place in (
        os.path.join(source, "include"), tools, os.path.join(build, "include"), sysconfig.get_path("include")))]

    def compiled(file):
        return subprocess.run([compiler, *flags, "-c", file, "-o", os.path.join(folder, os.path.basename(file) + ".o")]).returncode == 0

    # Two compilers run at a time: one compiler for each file would take memory and processors from the tests that run at the
    # same time.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert all(pool.map(compiled, sources))
    libraries = os.path.join(build, "lib")
    subprocess.run([compiler, "-shared", "-fsanitize=address", "-shared-libasan" if "clang" in library else "-shared-libgcc", "-o", target,
                    *(os.path.join(folder, os.path.basename(file) + ".o") for file in sources), "-L", libraries, "-lkjit", "-lm",
                    f"-Wl,-rpath,{libraries}"], check=True)
    environment = {**os.environ, "LD_PRELOAD": library, "PYTHONPATH": folder, "PYTHONMALLOC": "malloc",
                   "ASAN_OPTIONS": "detect_leaks=1:exitcode=0:halt_on_error=1:allocator_may_return_null=1:detect_stack_use_after_return=0:handle_segv=1:abort_on_error=0",
                   "LSAN_OPTIONS": "exitcode=0:report_objects=0:max_leaks=0"}
    for test in (*TESTS, "algorithms.py"):
        run = subprocess.run([sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), test)], capture_output=True, text=True,
                             env=environment, timeout=500)
        assert "ERROR: AddressSanitizer" not in run.stderr, (test, run.stderr[-6000:])
        assert run.returncode == 0, (test, run.stderr[-3000:])
        found = clean(run.stderr)
        assert not found, (test, "\n".join(found)[:6000])
        print(test, "good", "(no leaks were looked for)" if "LeakSanitizer has encountered a fatal error" in run.stderr else "", file=sys.stderr)

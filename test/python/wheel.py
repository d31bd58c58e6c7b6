# RUN: %kjit-python %s %builddir %srcdir %t
"""The wheel, which scripts/make-wheel.sh makes from this build, is installed into a fresh environment. There it computes, loads
quickly, and does not load LLVM before something is compiled. Its metadata and those of the source distribution name the extras.
scripts/check-wheel.sh tries both on other systems and with other versions of Python."""
import email
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

build, source, scratch = sys.argv[1:]
shutil.rmtree(scratch, ignore_errors=True)
subprocess.run([os.path.join(source, "scripts/make-wheel.sh"), scratch, build], check=True)
wheel, = glob.glob(os.path.join(scratch, "*.whl"))
assert re.fullmatch(r"kjit-\d+\.\d+\.\d+-cp310-abi3-manylinux_\d+_\d+_\w+\.whl", os.path.basename(wheel)), wheel


def check_metadata(text):
    about = email.message_from_string(text)
    assert about["Name"] == "kjit" and about["Version"] == os.path.basename(wheel).split("-")[1], about.items()
    assert about["Requires-Python"] == ">=3.10" and about.get_all("Provides-Extra") == ["cuda", "dask", "jax", "simulator", "torch"], about.items()
    needed = about.get_all("Requires-Dist")
    assert needed[0] == "numpy>=1.26" and len(needed) == 6, needed
    for extra in about.get_all("Provides-Extra"):
        assert sum(f"extra == '{extra}'" in line for line in needed) == 1, needed
    assert about.get_payload().startswith("# kjit for Python"), about.get_payload()[:40]


files = zipfile.ZipFile(wheel)
metadata, = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
check_metadata(files.read(metadata).decode())
if os.path.exists(os.path.join(source, ".git")):
    packaging = os.path.join(source, "tools/python/packaging.py")
    made = subprocess.run([sys.executable, packaging, "--sdist", os.path.join(scratch, "a new", "folder")], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    top = os.path.basename(made).removesuffix(".tar.gz")
    with tarfile.open(made) as packed:
        names = set(packed.getnames())
        check_metadata(packed.extractfile(f"{top}/PKG-INFO").read().decode())
        packed.extract(f"{top}/pyproject.toml", scratch)
    assert {f"{top}/{name}" for name in ("CMakeLists.txt", "LICENSE", "NOTICE", "scripts/make-wheel.sh", "tools/python/packaging.py")} <= names
    with open(os.path.join(scratch, top, "pyproject.toml")) as file:
        assert 'build-backend = "packaging"' in file.read()


def check_stale_kernels():
    """A build tree whose file of compiled kernels belongs to another build gives no wheel."""
    tree = os.path.join(scratch, "stale")
    os.makedirs(os.path.join(tree, "kernels"))
    for name in ("bin", "lib", "python", "CMakeCache.txt"):
        os.symlink(os.path.join(build, name), os.path.join(tree, name))
    with open(os.path.join(tree, "kernels/kernels.kjit"), "wb") as file:
        file.write(b"compiled by another build " * 100)
    done = subprocess.run([sys.executable, os.path.join(source, "tools/python/packaging.py"), tree, os.path.join(scratch, "none")], capture_output=True, text=True)
    assert done.returncode == 1 and "build the target kjit-kernels again, or remove" in done.stderr and "Traceback" not in done.stderr, done
    assert not os.listdir(os.path.join(scratch, "none"))


check_stale_kernels()
environment = os.path.join(scratch, "environment")
try:
    import ensurepip  # noqa: F401
    pip = True
except ImportError:
    pip = False
subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", *([] if pip else ["--without-pip"]), environment], check=True)
python = os.path.join(environment, "bin/python3")
if subprocess.run([python, "-c", "import numpy"], stderr=subprocess.DEVNULL).returncode:
    # This Python belongs to an environment itself, and the new one sees only the system's packages.
    import numpy

    place = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    with open(os.path.join(place, "numpy.pth"), "w") as file:
        file.write(os.path.dirname(os.path.dirname(numpy.__file__)) + "\n")
# No library from the current directory runs: the loader does not search it for libraries that kjit needs or opens.
hostile = os.path.join(scratch, "hostile")
os.mkdir(hostile)
with open(os.path.join(hostile, "here.c"), "w") as file:
    file.write("""#include <unistd.h>
__attribute__((constructor)) static void run(void) { static const char text[] = "code of the current directory runs\\n"; _exit(write(2, text, sizeof text - 1) ? 77 : 78); }
""")
subprocess.run(["cc", "-shared", "-fPIC", "here.c", "-o", "libcuda.so.1"], check=True, cwd=hostile)
for name in ("libm.so.6", "libmvec.so.1", "libz.so.1", "libzstd.so.1", "libkjit.so.0", "libkjit-compiler.so." + os.path.basename(wheel).split("-")[1]):
    shutil.copy(os.path.join(hostile, "libcuda.so.1"), os.path.join(hostile, name))

clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
if pip:
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", wheel], check=True, env=clean)
else:
    place = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True, text=True, stdout=subprocess.PIPE, env=clean).stdout.strip()
    zipfile.ZipFile(wheel).extractall(place)

program = os.path.join(scratch, "program.py")
with open(program, "w") as file:
    file.write("""
import sys, time
start = time.perf_counter()
import kjit
took = time.perf_counter() - start
maps = open("/proc/self/maps").read()
assert "libkjit.so" in maps and "libkjit-compiler" not in maps and sys.argv[1] in kjit.__file__, kjit.__file__
assert "numpy" not in sys.modules
import numpy as np
@kjit.jit
def twice(x):
    for i in kjit.grid_range(len(x)):
        x[i] *= 2
x = np.arange(5.0)
twice(x)
assert x.tolist() == [0, 2, 4, 6, 8] and (sys.argv[1] + "/lib") in open("/proc/self/maps").read()
print("import kjit: %.1f ms" % (1000 * took))
""")
subprocess.run([python, program, environment], check=True, env=clean, cwd=hostile)
shutil.rmtree(scratch)

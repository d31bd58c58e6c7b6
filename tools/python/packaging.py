#!/usr/bin/env python3
"""Makes the distributions of the package kjit: the wheel, and the source distribution.

packaging.py BUILD FOLDER packs the package of a build tree, python/kjit, as a wheel into FOLDER; packaging.py --sdist FOLDER packs the
source. pyproject.toml names this file as the build backend (PEP 517), so that pip can build kjit from a source distribution or a checkout.
For such a build, scripts/make-wheel.sh creates the build tree, with the LLVM that is installed on this machine."""
import base64
import hashlib
import io
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = (ROOT / "include/kjit/status.h").read_text()
VERSION = ".".join(re.findall(rf"KJIT_VERSION_{part} (\d+)", HEADER)[0] for part in ("MAJOR", "MINOR", "PATCH"))
# the time of all members of an archive; it is constant so that the same input gives the same bytes
FIXED_TIME = 1577836800

TOOLS = ("kjit-run", "kjit-compile", "kjit-cache")
ENTRY_POINTS = "[console_scripts]\n" + "".join(f"{tool} = kjit._tools:{tool.split('-')[1]}\n" for tool in TOOLS)
# kjit needs only NumPy. The extra `cuda` installs ptxas, which assembles machine code ahead of time, and
# libdevice. The extra `simulator` installs greenlet, with which threads of kernels wait in the interpreter.
EXTRAS = {
    "cuda": "nvidia-cuda-nvcc>=13; platform_system == 'Linux'",
    "dask": "dask[array,distributed]",
    "jax": "jax",
    "simulator": "greenlet",
    "torch": "torch",
}
METADATA = "\n".join([
    "Metadata-Version: 2.1",
    "Name: kjit",
    f"Version: {VERSION}",
    "Summary: Functions of Python as kernels for GPUs and the CPU",
    "License: Apache-2.0 WITH LLVM-exception",
    "Requires-Python: >=3.10",
    "Requires-Dist: numpy>=1.26",
    *(f"Provides-Extra: {name}" for name in EXTRAS),
    *(f"Requires-Dist: {needed}{' and' if ';' in needed else ';'} extra == '{name}'" for name, needed in EXTRAS.items()),
    "Description-Content-Type: text/markdown",
    "", (ROOT / "docs/python.md").read_text(),
])


# ---- the wheel ----


def needed_glibc(files):
    """Returns the newest glibc version whose symbols the files use, which the wheel's tag states."""
    versions = {(2, 17)}
    for file in files:
        symbols = subprocess.run(["objdump", "-T", file], stdout=subprocess.PIPE, check=True, text=True).stdout
        versions |= {(int(a), int(b)) for a, b in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", symbols)}
    return max(versions)


def run_path(file):
    """Returns the folders in which the loader looks for the libraries of a program."""
    entries = subprocess.run(["readelf", "-d", file], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = re.search(r"RUNPATH.*\[(.*)\]", entries)
    return found[1].split(":") if found else []


def stripped(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "--strip-unneeded", "-o", target, source.resolve()], check=True)
    return target


def python_tag(extension):
    """Returns the Python and ABI tags: _kjit.abi3.so serves every CPython from 3.10 on, _kjit.cpython-314t-x86_64-linux-gnu.so that version."""
    found = re.search(r"\.cpython-(\d+)(t?)-", extension.name)
    return f"cp{found[1]}-cp{found[1]}{found[2]}" if found else "cp310-abi3"


def zip_folder(folder, wheel, record_name):
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            data, name = path.read_bytes(), str(path.relative_to(folder))
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            entry = zipfile.ZipInfo.from_file(path, name)
            entry.date_time, entry.compress_type = (2020, 1, 1, 0, 0, 0), zipfile.ZIP_DEFLATED
            out.writestr(entry, data)
        out.writestr(record_name, "\n".join([*record, f"{record_name},,", ""]))


def check_kernels(build, kernels):
    """Ends the program if another build has made the file, because libkjit would ignore it."""
    done = subprocess.run([build / "bin/kjit-cache", "list", kernels], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{done.stderr}packaging.py: build the target kjit-kernels again, or remove {kernels}")


def write_wheel(build, folder):
    extension, = (build / "python/kjit").glob("_kjit.*.so")
    with tempfile.TemporaryDirectory() as scratch:
        package = pathlib.Path(scratch) / "kjit"
        shutil.copytree(build / "python/kjit", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        # All libraries are in one folder: the extension searches its own folder for libkjit, and libkjit searches it for the compiler.
        compiler, child = f"libkjit-compiler.so.{VERSION}", f"kjit-{VERSION}/kjit-compile-child"
        binaries = [stripped(extension, package / extension.name), stripped(build / "lib/libkjit.so.0", package / "libkjit.so.0"),
                    stripped(build / "lib" / compiler, package / compiler), stripped(build / "lib" / child, package / child)]
        # The kernels exist only if the target kjit-kernels was built, as for packages that are published.
        if (kernels := build / "kernels/kernels.kjit").exists():
            check_kernels(build, kernels)
            shutil.copy(kernels, package / f"kjit-{VERSION}/kernels.kjit")
        # Programs without $ORIGIN/.. in their run path look for libraries in folders of the build machine, which
        # the wheel does not have.
        is_portable = all((build / "bin" / tool).exists() for tool in TOOLS) and "$ORIGIN/.." in run_path(build / "bin" / TOOLS[0])
        if is_portable:
            binaries += [stripped(build / "bin" / tool, package / "bin" / tool) for tool in TOOLS]
        major, minor = needed_glibc(binaries)
        tag = f"{python_tag(extension)}-manylinux_{major}_{minor}_{platform.machine()}"
        info = pathlib.Path(scratch) / f"kjit-{VERSION}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(METADATA)
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: kjit\nRoot-Is-Purelib: false\nTag: {tag}\n")
        if is_portable:
            (info / "entry_points.txt").write_text(ENTRY_POINTS)
        for name in ("LICENSE", "NOTICE"):
            shutil.copy(ROOT / name, info / name)
        wheel = f"kjit-{VERSION}-{tag}.whl"
        zip_folder(pathlib.Path(scratch), folder / wheel, f"{info.name}/RECORD")
    return wheel


# ---- the source distribution ----


def write_sdist(folder):
    """Writes an archive of all files that git tracks."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, check=True, text=True).stdout
    name = f"kjit-{VERSION}"

    def plain(member):
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = FIXED_TIME
        return member

    with tarfile.open(folder / f"{name}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as out:
        for file in sorted(filter(None, listed.split("\0"))):
            out.add(ROOT / file, f"{name}/{file}", filter=plain)
        about = tarfile.TarInfo(f"{name}/PKG-INFO")
        about.size, about.mtime = len(METADATA.encode()), FIXED_TIME
        out.addfile(about, io.BytesIO(METADATA.encode()))
    return f"{name}.tar.gz"


# ---- hooks of PEP 517 ----


def get_requires_for_build_wheel(config_settings=None):
    """Returns CMake and Ninja as Python packages if they are not installed on the machine."""
    return [package for package in ("cmake", "ninja") if not shutil.which(package)]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([ROOT / "scripts/make-wheel.sh", folder], check=True, env={"KJIT_SHIPPED_KERNELS": "no", **os.environ, "KJIT_PYTHON_PROGRAM": sys.executable})
        wheel, = os.listdir(folder)
        shutil.copy(os.path.join(folder, wheel), wheel_directory)
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    return write_sdist(pathlib.Path(sdist_directory))


if __name__ == "__main__":
    first, target = sys.argv[1], pathlib.Path(sys.argv[2])
    target.mkdir(parents=True, exist_ok=True)
    print(target / (write_sdist(target) if first == "--sdist" else write_wheel(pathlib.Path(first), target)))

#!/usr/bin/env python3
"""make-wheel.py BUILD FOLDER: packs the package of a build tree, python/kjit, as a wheel."""
import base64
import hashlib
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
build, folder = map(pathlib.Path, sys.argv[1:])
header = (ROOT / "include/kjit/status.h").read_text()
version = ".".join(re.search(rf"KJIT_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def needed_glibc(files):
    """The newest version of glibc whose symbols the files use: what the wheel's tag promises."""
    versions = {(2, 17)}
    for file in files:
        symbols = subprocess.run(["objdump", "-T", file], stdout=subprocess.PIPE, check=True, text=True).stdout
        versions |= {(int(a), int(b)) for a, b in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", symbols)}
    return max(versions)


def run_path(file):
    """The folders where the loader looks for the libraries of a program."""
    entries = subprocess.run(["readelf", "-d", file], stdout=subprocess.PIPE, check=True, text=True).stdout
    found = re.search(r"RUNPATH.*\[(.*)\]", entries)
    return found[1].split(":") if found else []


def stripped(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "--strip-unneeded", "-o", target, source.resolve()], check=True)
    return target


TOOLS = ("kjit-run", "kjit-compile", "kjit-cache")
ENTRY_POINTS = "[console_scripts]\n" + "".join(f"{tool} = kjit._tools:{tool.split('-')[1]}\n" for tool in TOOLS)
METADATA = f"""Metadata-Version: 2.1
Name: kjit
Version: {version}
Summary: Functions of Python as kernels for GPUs and the CPU
License: Apache-2.0 WITH LLVM-exception
Requires-Python: >=3.11
Requires-Dist: numpy
Provides-Extra: dask
Requires-Dist: dask[array,distributed]; extra == "dask"
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Description-Content-Type: text/markdown

"""

with tempfile.TemporaryDirectory() as scratch:
    package = pathlib.Path(scratch) / "kjit"
    shutil.copytree(build / "python/kjit", package, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    # Beside one another: the extension looks for libkjit where it lies itself, libkjit for its compiler likewise.
    binaries = [stripped(build / "python/kjit/_kjit.abi3.so", package / "_kjit.abi3.so"), stripped(build / "lib/libkjit.so.0", package / "libkjit.so.0"),
                stripped(build / f"lib/libkjit-compiler.so.{version}", package / f"libkjit-compiler.so.{version}"),
                stripped(build / f"lib/kjit-{version}/kjit-compile-child", package / f"kjit-{version}/kjit-compile-child")]
    # The build's own programs would look for libraries of its machine where the wheel has none.
    is_portable = all((build / "bin" / tool).exists() for tool in TOOLS) and "$ORIGIN/.." in run_path(build / "bin" / TOOLS[0])
    if is_portable:
        binaries += [stripped(build / "bin" / tool, package / "bin" / tool) for tool in TOOLS]
    major, minor = needed_glibc(binaries)
    tag = f"cp311-abi3-manylinux_{major}_{minor}_{platform.machine()}"
    info = pathlib.Path(scratch) / f"kjit-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA + (ROOT / "docs/python.md").read_text())
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: kjit\nRoot-Is-Purelib: false\nTag: {tag}\n")
    if is_portable:
        (info / "entry_points.txt").write_text(ENTRY_POINTS)
    for name in ("LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, info / name)
    wheel = folder / f"kjit-{version}-{tag}.whl"
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(p for p in pathlib.Path(scratch).rglob("*") if p.is_file()):
            data, name = path.read_bytes(), str(path.relative_to(scratch))
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
            entry = zipfile.ZipInfo.from_file(path, name)
            entry.date_time, entry.compress_type = (2020, 1, 1, 0, 0, 0), zipfile.ZIP_DEFLATED  # the same bytes from the same build
            out.writestr(entry, data)
        name = f"kjit-{version}.dist-info/RECORD"
        out.writestr(name, "\n".join([*record, f"{name},,", ""]))
print(wheel)

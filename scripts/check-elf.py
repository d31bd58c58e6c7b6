#!/usr/bin/env python3
"""check-elf.py PATH...: fails if an ELF file makes the dynamic loader look for libraries in the current directory.

A PATH is a file, a folder or an archive: a wheel, a Debian package, a .tar.gz or a .tar.xz. Each element of RUNPATH and RPATH has
to be absolute or to begin with $ORIGIN; an empty element means the current directory. A name of a needed library that
has a slash, and the name of the dynamic loader, have to be absolute."""
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_STRTAB = 5
NAMES = {1: "NEEDED", 0x6ffffefb: "DEPAUDIT", 0x6ffffefc: "AUDIT", 0x7ffffffd: "AUXILIARY", 0x7fffffff: "FILTER"}
PATHS = {15: "RPATH", 29: "RUNPATH"}
ORIGINS = ("$ORIGIN", "${ORIGIN}")


def text_at(data, offset):
    return data[offset:data.index(b"\0", offset)].decode()


def read_dynamic(data):
    """Returns the interpreter, and (tag, text) for each entry in the dynamic section that is a name or a path."""
    if data[4:6] != b"\2\1":
        raise ValueError("expected an ELF file of 64 bits, little-endian")
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]
    offset_of = lambda address: next(h[2] + address - h[3] for h in headers if h[0] == PT_LOAD and 0 <= address - h[3] < h[5])
    loader = [text_at(data, h[2]) for h in headers if h[0] == PT_INTERP]
    entries = []
    for header in headers:
        if header[0] == PT_DYNAMIC and header[5]:
            entries += struct.iter_unpack("<QQ", data[header[2]:header[2] + header[5] // 16 * 16])
    strings = next((offset_of(value) for tag, value in entries if tag == DT_STRTAB), 0)
    return loader, [(tag, text_at(data, strings + value)) for tag, value in entries if tag in NAMES or tag in PATHS]


def find_defects(data):
    loader, entries = read_dynamic(data)
    for name in loader:
        if not name.startswith("/"):
            yield f"the dynamic loader is `{name}`"
    for tag, text in entries:
        if tag in NAMES and "/" in text and not text.startswith("/"):
            yield f"{NAMES[tag]} is `{text}`"
        for element in text.split(":") if tag in PATHS else []:
            if not element.startswith("/") and element.split("/")[0] not in ORIGINS:
                yield f"{PATHS[tag]} `{text}` has the element `{element}`"


def check_file(path, shown):
    """Returns 1 for an ELF file and 0 for other files. Prints the defects of the file and adds them to the list `defects`."""
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return 0
        data = b"\x7fELF" + file.read()
    for defect in find_defects(data) if data[16:18] != b"\1\0" else []:  # an object file is not loaded
        print(f"{shown}: {defect}")
        defects.append(defect)
    return 1


def unpack(path, folder):
    if path.endswith((".deb", ".ddeb")):
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)
    elif path.endswith(".whl"):
        zipfile.ZipFile(path).extractall(folder)
    else:
        tarfile.open(path).extractall(folder)


def check(path, shown):
    if os.path.isdir(path):
        files = [p for p in pathlib.Path(path).rglob("*") if p.is_file() and not p.is_symlink()]
        return sum(check_file(p, os.path.join(shown, p.relative_to(path))) for p in sorted(files))
    if path.endswith((".deb", ".ddeb", ".whl", ".tar.gz", ".tar.xz")):
        with tempfile.TemporaryDirectory() as folder:
            unpack(path, folder)
            return check(folder, shown)
    return check_file(path, shown)


defects = []
for given in sys.argv[1:]:
    count = check(given, given)
    print(f"{given}: {count} ELF files")
sys.exit(bool(defects))

#!/usr/bin/env python3
"""check-glibc.py NEWEST PATH...: fails if an ELF file needs a newer glibc than NEWEST (2.27, for example), and names the symbols that do.

A PATH is a file or a folder. A build for other systems (KJIT_STATIC_RUNTIME) has to pass with 2.27: each symbol that the script
prints needs a row in lib/old_glibc."""
import pathlib
import re
import subprocess
import sys


def needed_symbols(file):
    """Yields (version, symbol) for each glibc symbol that the file uses."""
    symbols = subprocess.run(["objdump", "-T", file], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [((int(a), int(b)), name) for a, b, name in re.findall(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?\)? +(\S+)", symbols)]


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def main(newest, *paths):
    limit = tuple(map(int, newest.split(".")))
    files = [file for path in map(pathlib.Path, paths) for file in ([path] if path.is_file() else sorted(path.rglob("*"))) if file.is_file() and is_elf(file)]
    if not files:
        sys.exit("check-glibc: no ELF file among " + " ".join(paths))
    defects = [f"{file}: {name} needs glibc {version[0]}.{version[1]}" for file in files for version, name in needed_symbols(file) if version > limit]
    print("\n".join(defects) or f"check-glibc: {len(files)} ELF files need no newer glibc than {newest}")
    return bool(defects)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

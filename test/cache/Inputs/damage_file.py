"""Writes a damaged copy of a file of compiled kernels: damage_file.py WHOLE COPY KIND."""
import os
import shutil
import sys

whole, copy, kind = sys.argv[1:]
with open(whole, "rb") as file:
    data = bytearray(file.read())
if os.path.isdir(copy):
    shutil.rmtree(copy)
elif os.path.lexists(copy):
    os.remove(copy)
if kind == "folder":
    os.mkdir(copy)
    sys.exit()
if kind == "random":
    data[:] = bytes((i * 197 + i // 256 * 31) % 251 for i in range(len(data)))
elif kind == "empty":
    del data[:]
elif kind == "short":
    del data[len(data) - 7 :]
elif kind == "index":
    data[150] ^= 4
elif kind == "blocks":  # the compressed kernels, which follow the index
    for i in range(len(data) // 2, len(data), 16):
        data[i] ^= 1
elif kind != "writable":
    sys.exit(f"unknown kind {kind}")
with open(copy, "wb") as file:
    file.write(data)
os.chmod(copy, 0o666 if kind == "writable" else 0o644)

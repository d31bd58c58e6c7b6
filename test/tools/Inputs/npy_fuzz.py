"""npy_fuzz.py NPY_FUZZ FUZZ_FOLDER FOLDER: runs the fuzz target for .npy files and compares each accepted file with
numpy.load's result."""
import os
import secrets
import subprocess
import sys
import warnings

import numpy as np

program, source, folder = sys.argv[1:]
seed = secrets.randbits(31)
command = [program, f"-seed={seed}", "-runs=60000", "-max_len=4096", "-max_total_time=300", f"-dict={source}/npy.dict", f"{source}/corpus/npy_fuzz"]
subprocess.run(command, check=True, env={**os.environ, "KJIT_FUZZ_KEEP": folder}, stdout=subprocess.DEVNULL, cwd=folder)
warnings.simplefilter("ignore")  # for headers that Python 2 wrote
NAMES = {"bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}


def leaves(dtype, path, offset):
    """Lists the numbers of a struct as kjit does: (path, type, offset, count)."""
    for name in dtype.names:
        field, start = dtype.fields[name][:2]
        base, shape = field.base, field.shape
        count = int(np.prod(shape)) if shape else 1
        at = f"{path}{name}"
        if base.names is not None:
            for i in range(count):
                yield from leaves(base, f"{at}[{i}]." if shape else f"{at}.", offset + start + i * base.itemsize)
        elif base.kind != "V":
            yield at, base, offset + start, count


def compare(number):
    path = os.path.join(folder, f"{number}.npy")
    with open(os.path.join(folder, f"{number}.txt"), encoding="ascii") as file:
        kind, shape, data, *listed = file.read().split("\n")
    try:
        x = np.load(path, allow_pickle=False, max_header_size=1 << 20)
    except Exception as error:
        return f"numpy refuses it: {error}"
    wanted = tuple(int(n) for n in shape.split())
    if kind == "struct":
        if x.dtype.names is None or x.shape + (x.dtype.itemsize,) != wanted:
            return f"numpy has {x.dtype} {x.shape}"
        ours = [(path, np.dtype(NAMES[element]), int(offset), int(count)) for path, element, offset, count in (line.split() for line in listed if line)]
        theirs = list(leaves(x.dtype, "", 0))
        if ours != theirs:
            return f"numpy has {theirs}, kjit {ours}"
    elif x.dtype != np.dtype(NAMES[kind]) or x.shape != wanted:
        return f"numpy has {x.dtype} {x.shape}"
    if kind == "bool":
        x = x.view(np.uint8) != 0
    # numpy copies the fields of a struct, but not the bytes between them, and arrays in Fortran's order are copied; as bytes,
    # everything is kept
    x = np.ascontiguousarray(x.view(f"V{x.dtype.itemsize}") if kind == "struct" else x)
    return None if x.tobytes().hex() == data else f"numpy has other data: {x.tobytes().hex()}"


count = sum(name.endswith(".npy") for name in os.listdir(folder))
# 60,000 inputs give about 300. The files of the corpus alone are 4.
assert count >= 40, f"seed {seed}: only {count} files were taken"
for number in range(count):
    difference = compare(number)
    if difference:
        with open(os.path.join(folder, f"{number}.npy"), "rb") as file:
            content = file.read()
        sys.exit(f"seed {seed}, file {number}: {difference}\n{content[:600]!r}")
print(f"seed {seed}: {count} files as numpy reads them")

"""npy.py KJIT_RUN PROGRAMS FOLDER: kjit-run reads arrays that NumPy wrote, whole and as views, and writes them back
with the same bits."""
import os
import secrets
import subprocess
import sys

import numpy as np

kjit_run, programs, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
seed = secrets.randbits(31)
rng = np.random.default_rng(seed)
TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def random_array(dtype):
    rank = int(rng.integers(0, 6))
    shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 6, rank))
    count = int(np.prod(shape))
    if dtype == np.bool_:
        flat = rng.integers(0, 2, count).astype(bool)
    else:
        flat = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype=dtype)
    return flat.reshape(shape, order="F" if rng.random() < 0.5 else "C")


def random_view(array):
    parts = []
    for extent in array.shape:
        kind = int(rng.integers(0, 4)) if extent else 0
        first = int(rng.integers(0, extent)) if extent else 0
        parts.append([":", "::-1", f"{first}:{int(rng.integers(first, extent + 1))}:{int(rng.integers(1, 3))}", str(first - extent)][kind])
    return "x" + (f"[{', '.join(parts)}]" if parts else "") + rng.choice(["", ".T"])


for name in TYPES:
    x = random_array(np.dtype(name))
    view = random_view(x)
    source, whole, part = (os.path.join(folder, n) for n in ("in.npy", "whole.npy", "part.npy"))
    np.save(source, x)
    command = [kjit_run, programs, "--device", "cpu", "--arg", f"x=@{source}", "--arg", "n=zeros:i32[1]", "--launch", "fill(n)",
               "--save", f"x={whole}", "--save", f"{view}={part}", "--check", f"x={source}"]
    process = subprocess.run(command, capture_output=True, text=True)
    where = f"seed {seed}: {name} {x.shape} {view}: {process.stdout}{process.stderr}"
    assert process.returncode == 0, where
    for path, wanted in ((whole, x), (part, eval(view))):
        got = np.load(path)
        assert got.dtype == wanted.dtype and got.shape == wanted.shape and got.tobytes() == np.ascontiguousarray(wanted).tobytes(), where

# Arrays that NumPy can write and kjit cannot use are rejected with status 4.
for x, reason in [(np.array([1, 2], dtype=">f4"), "big-endian"), (np.array(["a", 1], dtype=object), "object arrays"), (np.array(["ab"]), "is not supported"),
                  (np.zeros((1,) * 9), "more than 8 dimensions"), (np.zeros(2, dtype="M8[s]"), "is not supported")]:
    np.save(source, x, allow_pickle=True)
    process = subprocess.run([kjit_run, programs, "--device", "cpu", "--arg", f"x=@{source}", "--launch", "fill(x)"], capture_output=True, text=True)
    assert process.returncode == 4 and reason in process.stderr, (reason, process)

# Arrays of structs, which have C's layout also in the file.
pair = np.dtype([("x", "f4"), ("y", "f4")], align=True)
fields = [("id", "i1"), ("pairs", pair, (2, 3)), ("w", "f8"), ("z", "c8")]
body = np.dtype(fields, align=True)
structs = os.path.join(folder, "structs.kir")
with open(structs, "w") as file:
    file.write("struct Pair { x: f32; y: f32 }\nstruct Body { id: i8; pairs: Pair[2, 3]; w: f64; z: c64 }\nkernel f(s: Body[:]) { for i in grid_range(len(s)) { s[i].pairs[1, 2].y += 1 } }\n")
x = np.frombuffer(rng.integers(0, 100, 7 * body.itemsize, np.uint8).tobytes(), body).copy()
np.save(source, x)
subprocess.run([kjit_run, structs, "--device", "cpu", "--arg", f"s=@{source}:as=Body", "--launch", "f(s)", "--save", f"s={whole}", "--save", f"s[1::2].pairs={part}"], check=True)
x["pairs"][:, 1, 2]["y"] += np.float32(1)
assert np.load(whole).dtype == body and all(np.array_equal(np.load(whole)[n], x[n]) for n in body.names), seed
assert np.array_equal(np.load(part), x["pairs"][1::2]), seed
for dtype, option, status, reason in [(body, "", 2, "the file holds structs; name the struct"), (np.dtype(fields), ":as=Body", 2, "the file has pairs[0].x: f32 at byte 1, but the struct has pairs[0].x: f32 at byte 4"),
                                      (np.dtype(fields[:1]), ":as=Body", 2, "the file has nothing more"), (np.dtype("f4"), ":as=Body", 2, "the file holds numbers, not structs"),
                                      (np.dtype([("id", ">i4")]), ":as=Body", 4, "of field 'id' is not supported")]:
    np.save(source, np.zeros(2, dtype))
    process = subprocess.run([kjit_run, structs, "--device", "cpu", "--arg", f"s=@{source}{option}", "--launch", "f(s)"], capture_output=True, text=True)
    assert process.returncode == status and reason in process.stderr, (reason, process)

# Headers that claim more data than they have: each is rejected quickly and with little memory.
LARGEST = "'|V18446744073709551615'"
for descr, tail, reason in [
        (f"[('a', '<f4'), ('p', {LARGEST}), ('b', '<f4')]", "", "of field 'p' is not supported"),
        (f"[('a', [('b', '<f4'), ('', {LARGEST}), ('', '|V4')], (65536,))]", "", "the field name ''"),
        ("[('a', '|u1', (65536,)), ('b', '|u1')]", "", "a struct has more than 65536 bytes"),
        ("[" + "('', [('b', [('c', '|u1')], (256,))], (65536,)), " * 9000 + "]", "", "the field name ''"),
        ("[" + "('a', [('b', [], (65536,))], (65536,)), " * 9000 + "]", "", "a struct has no fields"),
        ("[('%s', [('b', '|u1')], (65536,))]" % ("a" * 500000), "", "fields have more than"),
        ("[('a', " * 40 + "'|u1'" + ")]" * 40, "", "nests more than 32 levels"),
        ("[('a', '|u1'), ('a', '|u1')]", "", "has two fields with the name 'a'"),
        ("[('a.b', '|u1')]", "", "the field name 'a.b'"),
        ("'<f4'", " + 1", "expected nothing after the '}', found '+ 1"),
        ("'<f4'", "\0", "expected nothing after the '}'"),
        ("'3i1'", "", "type '3i1' is not supported")]:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}{tail}\n".encode()
    with open(source, "wb") as file:
        file.write(b"\x93NUMPY\2\0" + len(header).to_bytes(4, "little") + header)
    command = ["sh", "-c", 'ulimit -t 5; exec "$@"', "sh", kjit_run, structs, "--device", "cpu", "--arg", f"s=@{source}:as=Body", "--launch", "f(s)"]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 4 and reason in process.stderr, (reason, process.returncode, process.stderr[:300])

# Padding with a shape has the size of the whole shape: here the size of the struct's own padding.
padded = np.dtype([("id", "i1"), ("p", "V1", (3,)), ("pairs", pair, (2, 3)), ("q", "V2", (2,)), ("w", "f8"), ("z", "c8")])
x = np.frombuffer(rng.integers(0, 100, 7 * padded.itemsize, np.uint8).tobytes(), padded)
np.save(source, x)
subprocess.run([kjit_run, structs, "--device", "cpu", "--arg", f"s=@{source}:as=Body", "--arg", "n=zeros:i32[1]", "--launch", "f(s)", "--save", f"s.w={part}"], check=True)
assert padded.itemsize == body.itemsize and np.array_equal(np.load(part), x["w"]), seed

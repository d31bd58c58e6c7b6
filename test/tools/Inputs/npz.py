"""npz.py FIVES FOLDER KJIT_RUN...: compares arrays in .npz files with NumPy's reading of the same files; then tests
archives that are broken byte by byte."""
import io
import os
import resource
import secrets
import struct
import subprocess
import sys
import zipfile

import numpy as np

fives, folder, *kjit_run = sys.argv[1:]
os.chdir(folder)
seed = secrets.randbits(31)
rng = np.random.default_rng(seed)


def call(*options):
    return subprocess.run([*kjit_run, fives, "--arg", "n=zeros:u8[1]", "--launch", "fives(n)", *options], capture_output=True, text=True, errors="replace", timeout=200)


def expect(*options, status=0, text=""):
    process = call(*options)
    assert process.returncode == status and text in process.stdout + process.stderr, (seed, options, process)


def draw(dtype):
    shape = tuple(int(n) for n in rng.integers(0, 9, rng.integers(0, 4)))
    return rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)


# ---- NumPy writes and kjit reads, and vice versa ----

for save in (np.savez, np.savez_compressed):
    arrays = {"x": draw("f4"), "y": draw("?"), "long name": draw("i8"), "größe": draw("c8"), "z": np.asfortranarray(draw("f8"))}
    save("in.npz", **arrays)
    options = [option for argument, name in (("x", ""), ("y", ""), ("a", ":long name"), ("b", ":größe"), ("z", ":z")) for option in ("--arg", f"{argument}=@in.npz{name}")]
    expect(*options, "--save", "x=out.npz", "--save", "y=alone.npz", "--save", "y=out.npz:größe", "--save", "a=out.npz", "--save", "b=b.npy", "--save", "z=out.npz:the z",
           "--check", "x=in.npz", "--check", "y=@in.npz", "--check", "a=in.npz:long name", "--check", "b=@in.npz:größe", "--check", "z=in.npz:z")
    got, alone = np.load("out.npz"), np.load("alone.npz")
    assert got.files == ["x", "größe", "a", "the z"] and alone.files == ["y"], (seed, got.files)
    for a, b in ((got["x"], "x"), (got["größe"], "y"), (got["a"], "long name"), (got["the z"], "z"), (alone["y"], "y"), (np.load("b.npy"), "größe")):
        assert a.dtype == arrays[b].dtype and a.shape == arrays[b].shape and np.array_equal(a, arrays[b]), (seed, b)
    assert zipfile.ZipFile("out.npz").testzip() is None
    first = open("out.npz", "rb").read()
    expect("--arg", "x=@out.npz", "--arg", "y=@alone.npz", "--arg", "q=@alone.npz", "--check", "q=y", "--save", "x=out.npz:x")
    assert np.load("out.npz").files == ["x"], seed
    expect("--arg", "x=@in.npz", "--arg", "y=@in.npz", "--arg", "a=@in.npz:long name", "--arg", "z=@in.npz:z", "--save", "x=out.npz", "--save", "y=out.npz:größe", "--save", "a=out.npz",
           "--save", "z=out.npz:the z")
    assert open("out.npz", "rb").read() == first, seed

wide = {"x": rng.standard_normal((3, 4)), "views": draw("f4")}
np.savez("in.npz", **wide)
expect("--arg", "h=@in.npz:x:as=f32", "--arg", "v=@in.npz:x:as=f64x4", "--check", "h=in.npz:x", "--rtol", "1e-6", "--save", "h[::2, 1]=out.npz", "--save", "v=out.npz")
assert np.array_equal(np.load("out.npz")["h[::2, 1]"], wide["x"].astype("f4")[::2, 1]) and np.array_equal(np.load("out.npz")["v"], wide["x"]), seed
other = wide["x"].copy()
other[2, 3] += 1
np.savez("other.npz", x=other)
expect("--arg", "x=@in.npz", "--check", "x=other.npz", status=1, text="FAILED: 1 of 12")
body = np.array([(1, 2.5)], np.dtype([("a", "<i4"), ("b", "<f4")]))
np.savez("structs.npz", x=body)
open("struct.kir", "w").write("struct Pair { a: i32\n b: f32 }\nkernel twice(x) { for i in grid_range(len(x)) { x[i].a = 2 * x[i].a } }\n")
process = subprocess.run([*kjit_run, "struct.kir", "--arg", "x=@structs.npz:as=Pair", "--launch", "twice(x)", "--save", "x=twice.npz"], capture_output=True, text=True)
assert process.returncode == 0 and np.load("twice.npz")["x"].tolist() == [(2, 2.5)] and np.load("twice.npz")["x"].dtype == body.dtype, process
large = rng.integers(0, 1 << 60, 3_000_000)  # more data than the buffers in between can hold
np.savez_compressed("large.npz", x=large)
expect("--arg", "x=@large.npz", "--save", "x=again.npz")
assert np.array_equal(np.load("again.npz")["x"], large), seed

# ---- errors ----

# A limit on file sizes is reached in the middle of an array and in the archive's directory. The previous file must
# remain.
before = open("again.npz", "rb").read()
for limit in (1 << 20, len(before) - 30):
    process = subprocess.run([*kjit_run, fives, "--arg", "x=@large.npz", "--arg", "n=zeros:u8[1]", "--launch", "fives(n)", "--save", "x=again.npz"], capture_output=True, text=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert process.returncode == 4 and "again.npz: writing failed: File too large; the existing file is unchanged" in process.stderr, (seed, limit, process)
    assert open("again.npz", "rb").read() == before and not [name for name in os.listdir() if name.startswith(".kjit")], seed

expect("--arg", "q=@in.npz", status=4, text="in.npz: the file has several arrays; name one of them, `in.npz:NAME`: x, views")
expect("--arg", "x=@in.npz:w", status=4, text="in.npz: the file has no array 'w'; it has x, views")
expect("--arg", "x=@none.npz", status=4, text="none.npz: No such file or directory")
expect("--arg", "x=@.npz", status=4)
expect("--save", "n=out.npz", "--save", "n=out.npz:n", status=2, text="out.npz:n: two arrays have the name 'n'")
expect("--save", "n=out.npz:", status=2, text="expected the array's name after ':'")
os.mkfifo("pipe.npz")
expect("--save", "n=pipe.npz", status=2, text="a .npz file must be a regular file")
expect("--arg", "x=@pipe.npz", status=4, text="expected a regular file, not a device or pipe")
expect("--save", "n=no/such/folder.npz", status=4, text="No such file or directory")


def archive(entries, method=zipfile.ZIP_STORED):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as file:
        for name, data in entries:
            file.writestr(name, data)
    return bytearray(content.getvalue())


def npy(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def refuse(content, text):
    open("bad.npz", "wb").write(content)
    expect("--arg", "x=@bad.npz", status=4, text=text)


x = rng.integers(0, 100, 50, np.uint8)
good = archive([("x.npy", npy(x))])
directory = good.index(b"PK\1\2")
refuse(b"", "not a .npz file")
refuse(b"PK" + bytes(100), "not a .npz file")
refuse(good[:-20], "not a .npz file")
refuse(archive([("x.txt", b"x")]), "the file has no array")
refuse(archive([("x.npy", b"x")]), "bad.npz:x: expected a .npy file, but it has only 1 bytes")
refuse(archive([("x.npy", npy(x)[:-1])]), "bad.npz:x: the .npy header states 50 bytes of data, but the file has 49: it is truncated")
refuse(archive([("x.npy", npy(np.array([None])))]), "object arrays")
refuse(archive([("x.npy", npy(x))], zipfile.ZIP_BZIP2), "an array is compressed by method 12; only stored and deflated arrays are supported")
refuse(archive([("x.npy", npy(x)), ("y.npy", npy(x))]).replace(b"y.npy", b"x.npy"), "there are 2 arrays named 'x'")
refuse(archive([("\33[2J\t\u0085größe.npy", b"x"), ("a" * 250 + ".npy", b"x")]), "name one of them, `bad.npz:NAME`: ?[2J???größe, ...")
changed = bytearray(good)
changed[directory - 1] ^= 1
refuse(changed, "bad.npz:x: broken .npz file: a wrong checksum")
changed = bytearray(good)
changed[directory + 8] |= 1
refuse(changed, "an entry is encrypted")
for size in (2**31, 2**32 - 2):  # a few bytes that claim to contain gigabytes
    changed = archive([("x.npy", npy(x))], zipfile.ZIP_DEFLATED)
    directory = changed.index(b"PK\1\2")
    changed[directory + 24:directory + 28] = struct.pack("<I", size)
    refuse(changed, "the sizes of an entry are impossible")

# An archive with one changed byte is read as NumPy reads it, or is rejected, but never gives another array.
taken = 0
for draw_number in range(120):
    content = archive([("x.npy", npy(x)), ("w.npy", npy(x[::-1]))], (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[draw_number % 2])
    for at in rng.integers(0, len(content), rng.integers(1, 3)):
        content[at] ^= 1 << int(rng.integers(8))
    if draw_number % 5 == 0:
        del content[int(rng.integers(len(content))):]
    open("bad.npz", "wb").write(content)
    process = call("--arg", "x=@bad.npz:x", "--save", "x=read.npy")
    assert process.returncode in (0, 4), (seed, draw_number, process)
    if process.returncode == 0:
        taken += 1
        got = np.load("read.npy")
        assert got.dtype == x.dtype and np.array_equal(got, x), (seed, draw_number, got)
assert 0 < taken < 120, (seed, taken)

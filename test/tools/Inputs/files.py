"""files.py FIVES FOLDER KJIT_RUN...: compares arrays in files of each kind with Python's reading of the same files;
then tests broken files."""
import os
import secrets
import struct
import subprocess
import sys
import zlib

import numpy as np

fives, folder, *kjit_run = sys.argv[1:]
os.chdir(folder)
seed = secrets.randbits(31)
rng = np.random.default_rng(seed)


def call(*options):
    return subprocess.run([*kjit_run, fives, "--arg", "x=zeros:u8[1]", "--launch", "fives(x)", *options], capture_output=True, text=True)


def expect(*options, status=0, text=""):
    process = call(*options)
    assert process.returncode == status and text in process.stdout + process.stderr, (seed, options, process)


def read_netpbm(path):
    kind, size, highest, data = open(path, "rb").read().split(b"\n", 3)
    columns, rows = map(int, size.split())
    return np.frombuffer(data, np.uint8).reshape((rows, columns, 3) if kind == b"P6" else (rows, columns))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def write_png(path, x, broken=False):
    depth = x.shape[2] if x.ndim == 3 else 1
    rows = b"".join(b"\0" + row.tobytes() for row in x)
    header = struct.pack(">IIBBBBB", x.shape[1], x.shape[0], 8, {1: 0, 2: 4, 3: 2, 4: 6}[depth], 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    open(path, "wb").write(content[:-30] if broken else content)


def read_png(path):
    """Decodes by the specification: chunks, zlib, the five filters."""
    content, at, data = open(path, "rb").read(), 8, b""
    while at < len(content):
        size, name = struct.unpack(">I4s", content[at:at + 8])
        body = content[at + 8:at + 8 + size]
        if name == b"IHDR":
            columns, rows, bits, color = struct.unpack(">IIBB", body[:10])
        data += body if name == b"IDAT" else b""
        at += size + 12
    depth, data = {0: 1, 4: 2, 2: 3, 6: 4}[color], zlib.decompress(data)
    assert bits == 8
    width, before, result = columns * depth, [0] * (columns * depth), []
    for row in range(rows):
        kind, *line = data[row * (width + 1):(row + 1) * (width + 1)]
        for i in range(width):
            a, b, c = (line[i - depth] if i >= depth else 0), before[i], (before[i - depth] if i >= depth else 0)
            p = a + b - c
            paeth = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            line[i] = (line[i] + [0, a, b, (a + b) // 2, paeth][kind]) % 256
        result.append(line)
        before = line
    return np.array(result, np.uint8).reshape((rows, columns, depth) if depth > 1 else (rows, columns))


# ---- pictures ----

for depth in (1, 2, 3, 4):
    shape = tuple(int(n) for n in rng.integers(1, 20, 2)) + ((depth,) if depth > 1 else ())
    x = rng.integers(0, 256, shape, np.uint8)
    np.save("in.npy", x)
    names = ["out.png"] + (["out.pgm"] if depth == 1 else ["out.ppm"] if depth == 3 else [])
    for name in names:
        expect("--arg", "m=@in.npy", "--save", f"m={name}", "--save", f"m[::-1]=down{name[-4:]}")
        read = read_png if name.endswith("png") else read_netpbm
        assert np.array_equal(read(name), x) and np.array_equal(read("down" + name[-4:]), x[::-1]), (seed, name)
        expect("--arg", f"m=@{name}", "--check", "m=in.npy", "--check", f"m={name}", "--check", f"m=@{name}", text="all equal")
    write_png("python.png", x)
    expect("--arg", "m=@python.png", "--save", "m=again.npy")
    assert np.array_equal(np.load("again.npy"), x), seed
    x = x.copy()
    x.reshape(-1)[-1] ^= 1
    write_png("other.png", x)
    expect("--arg", "m=@in.npy", "--check", "m=other.png", status=1, text="FAILED: 1 of")

# ---- tables ----

for name in ("?", "i1", "u8", "i8", "f2", "f4", "f8"):
    for shape in [(7,), [(), (1,), (4, 3), (3, 1), (1, 4)][int(rng.integers(5))]]:
        dtype, count = np.dtype(name), int(np.prod(shape))
        flat = rng.integers(0, 2, count).astype(bool) if name == "?" else np.frombuffer(rng.bytes(count * dtype.itemsize), dtype)
        if dtype.kind == "f":
            flat = np.where(rng.random(count) < 0.2, rng.choice([np.inf, -np.inf, np.nan], count), flat).astype(dtype)
        x = flat.reshape(shape)
        np.save("in.npy", x)
        # an unsigned number of 64 bits may be read as f64
        expect("--arg", "m=@in.npy", "--save", "m=out.csv")
        expect("--arg", "m=@in.npy", "--check", "m=out.csv", "--rtol", *(["1e-15"] if name == "u8" else ["0", "--atol", "0"]))
        lines = [line.split(",") for line in open("out.csv", encoding="ascii").read().splitlines()]
        got = np.array([[{"true": True, "false": False}[cell] if name == "?" else dtype.type(cell) for cell in line] for line in lines], dtype).reshape(shape)
        assert np.array_equal(got, x, equal_nan=dtype.kind == "f"), (seed, name, shape)

x = rng.integers(-1000, 1000, (5, 4))
np.savetxt("python.csv", x, delimiter=", ", fmt="%d", newline="\r\n")
np.save("in.npy", x)
expect("--arg", "m=@python.csv", "--check", "m=in.npy", "--save", "m=again.npy", text="all equal")
assert np.load("again.npy").dtype == np.int64

# ---- broken files ----

for name, content, text in [("a.csv", b"1,2\n3\n", "line 2: expected 2 cells, as in line 1, not 1"), ("a.csv", b"1,b\n", "line 1, column 2: expected a number, not 'b'"),
                            ("a.csv", b"1,,x\n", "line 1, column 3: expected a number, not 'x'"), ("a.csv", b"1 2\n", "line 1: expected numbers, but the line has texts"), ("a.csv", b"1\n\0", "unexpected byte 0"),
                            ("a.pgm", b"P2\n1 1\n255\n0", "does not start with P5 or P6"), ("a.pgm", b"P5\n2 2\n65535\n", "the maximum value 255"),
                            ("a.pgm", b"P5\n99999999999999999999 2\n255\n", "expected a header"), ("a.ppm", b"P6\n2000000000 2000000000\n255\n.", "the header states 12000000000000000000 bytes, but the file has 1"),
                            ("a.png", b"P6", "not a .png file"), ("a.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 16, 0, 0, 0, 0)) + chunk(b"IDAT", b""), "expected 8 bits"),
                            ("a.png", b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 9, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"")), "broken .png file")]:
    open(name, "wb").write(content)
    expect("--arg", f"m=@{name}", status=4, text=text)
write_png("cut.png", rng.integers(0, 256, (40, 40), np.uint8), broken=True)
expect("--arg", "m=@cut.png", status=4, text="broken .png file")

#!/usr/bin/env python3
"""shared_need.py: a launch whose own shared array has just the elements that the threads use is never refused.

Indices of random expressions of the thread's position, with sums, masks, remainders, shifts and conversions to narrower types and back, are evaluated here for every thread. The launch
gives the largest index and one elements. Where the compiler takes the index for larger than it is, the launch is refused, and kjit-run fails.
"""
import argparse
import os
import random
import struct
import subprocess
import sys
import tempfile

INTEGERS = {"u8": (8, False), "i8": (8, True), "u16": (16, False), "i16": (16, True), "u32": (32, False), "i32": (32, True), "i64": (64, True), "bool": (1, False)}
FLOATS = ("f16", "bf16", "f32")


def wrap(value, to):
    bits, is_signed = INTEGERS[to]
    if to == "bool":
        return int(value != 0)
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed and value >> bits - 1 else value


def rounded(value, to):
    if to == "f16":
        return int(struct.unpack("<e", struct.pack("<e", value))[0])
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if to == "bf16":
        bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000
    return int(struct.unpack("<f", struct.pack("<I", bits))[0])


def expression(draw, depth):
    """Returns the text and a function of (x, y, z, rank) in exact integers."""
    leaves = [("threadIdx.x", lambda t: t[0]), ("threadIdx.y", lambda t: t[1]), ("threadIdx.z", lambda t: t[2]), ("thread_rank", lambda t: t[3]), ("threadIdx.x", lambda t: t[0])]
    if depth == 0:
        return draw.choice(leaves)
    text, value = expression(draw, depth - 1)
    kind, number = draw.choice(["sum", "cast", "cast", "cast", "float", "mask", "remainder", "shift", "min", "cond"]), draw.randint(0, 300)
    if kind == "sum":
        return f"({text} + {number})", lambda t: value(t) + number
    if kind == "cast":
        to = draw.choice(list(INTEGERS))
        return f"i64({to}({text}))", lambda t: wrap(value(t), to)
    if kind == "float":
        to = draw.choice(FLOATS)
        return f"i64({to}({text}))", lambda t: rounded(value(t), to)
    if kind == "mask":
        return f"({text} & {number})", lambda t: value(t) & number
    if kind == "remainder":
        return f"({text} % {number + 1})", lambda t: value(t) % (number + 1)
    if kind == "shift":
        return f"({text} >> {number % 4})", lambda t: value(t) >> number % 4
    if kind == "min":
        return f"min({text}, {number})", lambda t: min(value(t), number)
    return f"({text} < {number} ? {text} : 0)", lambda t: value(t) if value(t) < number else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kjit-run", default=os.environ.get("KJIT_RUN", "kjit-run"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=20261128)
    arguments = parser.parse_args()
    draw = random.Random(arguments.seed)
    kernels, launches = [], []
    while len(kernels) < arguments.count:
        block = draw.choice([(512, 1, 1), (1024, 1, 1), (16, 16, 2), (300, 2, 1), (1, 300, 3), (2, 8, 64)])
        text, value = expression(draw, draw.randint(1, 4))
        threads = [(x, y, z, x + block[0] * (y + block[1] * z)) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
        try:
            values = [value(thread) for thread in threads]
        except OverflowError:
            continue
        if min(values) < 0 or max(values) > 5000:
            continue
        form = draw.choice(["  x[{}] = 1\n", "  let at = {}\n  x[at] = 1\n", "  atomic_add(x[{}], 1)\n"])
        kernels.append(f"kernel k{len(kernels)}(r: i32[:]) {{\n  shared x: i32[]\n{form.format(text)}  syncthreads()\n  if thread_rank == 0 {{ r[0] += i32(len(x)) }}\n}}\n")
        launches += ["--launch", f"k{len(launches) // 2}[1, {'x'.join(map(str, block))}, {4 * (max(values) + 1)}](r)"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.kir")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(kernels)
        found = subprocess.run([arguments.kjit_run, "-q", "--no-cache", "--device", arguments.device, "--checks", "bounds", path, "--arg", "r=zeros:i32[1]", *launches],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(found.stdout + f"{len(kernels)} kernels, seed {arguments.seed}")
    return found.returncode


if __name__ == "__main__":
    sys.exit(main())

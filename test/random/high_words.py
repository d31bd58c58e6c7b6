#!/usr/bin/env python3
"""high_words.py: sums, products and shifts of 64-bit integers whose low words are 0, as values and as indices of neighbouring elements, against Python's integers."""
import argparse
import random
import secrets
import sys

import numpy as np

from library import NUMPY, Failure, Library

MASK = (1 << 64) - 1
THREADS = 64


def signed(x):
    x &= MASK
    return x - (1 << 64) if x >> 63 else x


class Expression:
    """Returns an expression in kernel IR, and its value for given operands, in 64 bits."""

    def __init__(self, text, value):
        self.text, self.value = text, value


def draw_leaf(d):
    name = d.choice("xyz")
    return Expression(name, lambda given: given[name])


def draw_multiple(d, depth):
    """Usually a multiple of 2^32."""
    kind = d.choice(("shift", "shift", "multiply") if depth == 0 else ("shift", "multiply", "constant", "join", "join", "join"))
    if kind == "constant":
        number = d.randrange(1, 1 << 20) << d.choice((31, 32, 32, 33, 40))
        return Expression(f"{number}i64", lambda given: number)
    if kind == "join":
        left, right = draw_multiple(d, depth - 1), draw_multiple(d, depth - 1)
        symbol, join = d.choice((("+", int.__add__), ("-", int.__sub__), ("&", int.__and__), ("|", int.__or__), ("^", int.__xor__)))
        return Expression(f"({left.text} {symbol} {right.text})", lambda given: join(left.value(given), right.value(given)) & MASK)
    leaf = draw_leaf(d)
    if kind == "shift":
        count = d.choice((31, 32, 32, 33, 40, 63))
        return Expression(f"({leaf.text} << {count})", lambda given: leaf.value(given) << count & MASK)
    factor = d.choice((3, 5, 7, 12345, (1 << 31) - 1)) << d.choice((31, 32, 32, 33))
    factor = signed(factor)
    return Expression(f"({leaf.text} * {factor}i64)", lambda given: leaf.value(given) * factor & MASK)


def draw_value(d):
    multiple, count = draw_multiple(d, d.randint(0, 3)), d.choice((0, 1, 3, 29, 31, 32, 32, 32, 33, 40, 63))
    if d.random() < 0.5:
        return Expression(f"({multiple.text} >> {count})", lambda given: signed(multiple.value(given)) >> count & MASK)
    return Expression(f"i64(u64({multiple.text}) >> {count})", lambda given: multiple.value(given) >> count)


def check_values(library, d):
    """The operands are an element, its neighbour and a number."""
    values = [draw_value(d) for _ in range(8)]
    lines = "".join(f"  r[{n}, i] = {v.text}\n" for n, v in enumerate(values))
    text = f"kernel k(r, a, b, z) {{\n  let i = blockIdx.x * blockDim.x + threadIdx.x\n  let x = a[i]\n  let y = b[i]\n{lines}}}\n"
    a, b = (np.array([d.choice((d.getrandbits(64), d.randint(0, 9), MASK)) for _ in range(THREADS)], np.uint64).view(np.int64) for _ in range(2))
    z, r = signed(d.getrandbits(64)), np.zeros((len(values), THREADS), np.int64)
    library.run(text, [("i64", r), ("i64", a), ("i64", b), ("i64", z)], (2, 1, 1), (THREADS // 2, 1, 1))
    wanted = [[signed(v.value({"x": int(a[i]) & MASK, "y": int(b[i]) & MASK, "z": z & MASK})) for i in range(THREADS)] for v in values]
    return (r == np.array(wanted)).all(), text


def draw_place_step(d, each):
    """Returns statements on a thread's elements, and a Python function that does the same to a row of them."""
    first = d.randrange(each)
    last = d.randint(first + 1, each)
    of, less, sign = d.randrange(each), d.randint(1, 9), d.choice((1, -1))
    symbol = "+" if sign > 0 else "-"

    def move(row, t):
        for k in range(first, last):
            row[k] += sign * (t - k * less)
            row[k] += sign * row[of]

    text = f"""  for k in range({first}, {last}) @unroll {{
    e[i * {each} + k] {symbol}= t - k * {less}
    e[i * {each} + k] {symbol}= e[i * {each} + {of}]
  }}
"""
    return text, move


def check_places(library, d):
    """Each thread stores to its own elements, whose indices are 64-bit values."""
    name, each = d.choice(("u8", "u8", "i16", "u32")), d.randint(3, 7)
    steps = [draw_place_step(d, each) for _ in range(d.randint(1, 3))]
    body = "".join(text for text, _ in steps)
    text = f"kernel k(e) {{\n  let i = blockIdx.x * blockDim.x + threadIdx.x\n  let t = threadIdx.x\n{body}}}\n"
    before = np.array([d.getrandbits(7) for _ in range(THREADS * each)], NUMPY[name])
    e, half = before.copy(), THREADS // 2
    library.run(text, [(name, e)], (2, 1, 1), (half, 1, 1))
    wanted = [int(v) for v in before]
    bits = (1 << 8 * before.itemsize) - 1
    for i in range(THREADS):
        row = wanted[i * each : (i + 1) * each]
        for _, move in steps:
            move(row, i % half)
        wanted[i * each : (i + 1) * each] = row
    return all((int(got) - want) & bits == 0 for got, want in zip(e, wanted)), text


def check(libraries, d):
    library, form = d.choice(libraries), d.choice((check_values, check_places))
    try:
        is_right, text = form(library, d)
    except Failure as failure:
        is_right, text = False, str(failure)
    if not is_right:
        print(f"WRONG: {text}")
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=60)
    arguments = parser.parse_args()
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    d = random.Random(seed)
    libraries = [Library(arguments.libdir, arguments.device, checks) for checks in ((), ("bounds",))]
    wrong = sum(not check(libraries, d) for _ in range(arguments.count))
    print(f"{wrong} wrong of {arguments.count}")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()

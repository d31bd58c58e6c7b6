#!/usr/bin/env python3
"""quotients.py: complex quotients and reciprocals of all magnitudes against exact rational numbers, and the functions of complex numbers against NumPy's of long doubles, where these have
a wider range than f64. Operands of quotients are loaded, or literals of the kernel, whose quotients the compiler computes."""
import argparse
import math
import os
import random
import secrets
import sys
from fractions import Fraction

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "algorithm"))
from calls import CODES, Arg, Library, Tensor  # noqa: E402

import ctypes as c  # noqa: E402

FORMATS = {"c64": (np.float32, np.complex64, 24, -126, 127), "c128": (np.float64, np.complex128, 53, -1022, 1023)}
KERNEL = "kernel k(q, r, p, a, b) {{ for i in grid_range(len(q)) {{ q[i] = a[i] / b[i]; r[i] = 1 / b[i]; p[i] = b[i] ** -1 }} }}\n"
COUNT = 4000


class Draw:
    def __init__(self, d, name):
        self.d, (self.part, self.whole, self.digits, self.low, self.high) = d, FORMATS[name]
        self.info = np.finfo(self.part)

    def number(self, near=None):
        """Returns any finite number: with a random exponent, or one near another number's exponent; often at an end of
        the range, or 0."""
        d, kind = self.d, self.d.random()
        if kind < 0.1:
            return self.part(0)
        if kind < 0.25:
            ends = (self.info.max, self.info.tiny, self.info.smallest_subnormal, self.info.max / 2, 1, 2, 3)
            return self.part(d.choice(ends)) * self.part(d.choice((-1, 1)))
        exponent = d.randint(self.low - self.digits + 1, self.high) if near is None else min(near + d.randint(-3, 3), self.high)
        return self.part(math.ldexp(d.uniform(1, 1.99) * d.choice((-1, 1)), exponent))

    def complex(self):
        x = self.number()
        y = self.number(math.frexp(float(x))[1] - 1) if x and self.d.random() < 0.5 else self.number()
        return self.whole(complex(x, y))


def divide(x, y):
    """Exactly: (real, imaginary)."""
    a, b, e, f = (Fraction(float(v)) for v in (x.real, x.imag, y.real, y.imag))
    size = e * e + f * f
    return (a * e + b * f) / size, (b * e - a * f) / size


def is_right(draw, got, x, y):
    """As near as a few roundings of the quotient's size; where one part of the divisor is 0, each part by itself, but for bits that a subnormal part of the dividend has
    no room for beside one near the largest number."""
    wanted = divide(x, y)
    most, least, unit = Fraction(float(draw.info.max)), Fraction(float(draw.info.smallest_subnormal)), Fraction(1, 2 ** (draw.digits - 1))
    whole = max(abs(w) for w in wanted)
    is_plain = not y.real or not y.imag
    lost = 256 * least / max(abs(Fraction(float(y.real))), abs(Fraction(float(y.imag))))
    for part, w in zip((got.real, got.imag), wanted):
        allowed = 6 * unit * (abs(w) if is_plain else whole) + 4 * least + lost
        if np.isnan(part):
            return False
        if np.isinf(part):
            if abs(w) + allowed < most or (part > 0) != (w > 0):
                return False
        elif abs(Fraction(float(part)) - w) > allowed and not (abs(w) > most and abs(Fraction(float(part))) > most * (1 - 8 * unit)):
            return False
    return True


def tensor(array, name, keep):
    shape, strides = (c.c_int64 * 1)(array.size), (c.c_int64 * 1)(1)
    made = Tensor(array.ctypes.data, 1, 0, 1, *CODES[name], 1, shape, strides, 0)
    keep.append((made, shape, strides, array))
    return Arg(3, 0, 0, 0, c.addressof(made))


def report(name, form, x, y, got):
    wanted = [float(w) if abs(w) < 10**300 else math.inf for w in divide(x, y)]
    print(f"WRONG: {name}, {form}: {x} / {y} = {got}, and is about {wanted}")


def check_loaded(library, name, d):
    draw, keep = Draw(d, name), []
    a, b = (np.array([draw.complex() for _ in range(COUNT)]) for _ in range(2))
    b[b == 0] = 1
    results = [np.zeros(COUNT, draw.whole) for _ in range(3)]
    module = library.parse(KERNEL.format())
    library.launch(module, "k", [tensor(v, name, keep) for v in (*results, a, b)])
    library.release(module)
    one, wrong = draw.whole(1), 0
    for form, got, x in zip(("a / b", "1 / b", "b ** -1"), results, (a, [one] * COUNT, [one] * COUNT)):
        for k in range(COUNT):
            if not is_right(draw, got[k], x[k], b[k]):
                wrong += 1
                if wrong < 5:
                    report(name, form, x[k], b[k], got[k])
    return wrong


def literal(name, part, z):
    kind = "f32" if name == "c64" else "f64"
    text = [f"{'-' if v < 0 or math.copysign(1, v) < 0 else ''}{abs(float(v))!r}{kind}" for v in (z.real, z.imag)]
    return f"{name}({', '.join(text)})"


def check_literals(library, name, d, count):
    draw, keep = Draw(d, name), []
    pairs = [(draw.complex(), draw.complex()) for _ in range(count)]
    pairs = [(x, y) for x, y in pairs if y != 0]
    body = "; ".join(f"q[{k}] = {literal(name, draw.part, x)} / {literal(name, draw.part, y)}" for k, (x, y) in enumerate(pairs))
    q = np.zeros(len(pairs), draw.whole)
    module = library.parse(f"kernel k(q) {{ for i in grid_range(1) {{ {body} }} }}\n")
    library.launch(module, "k", [tensor(q, name, keep)])
    library.release(module)
    wrong = [(x, y, got) for (x, y), got in zip(pairs, q) if not is_right(draw, got, x, y)]
    for x, y, got in wrong[:4]:
        report(name, "literals", x, y, got)
    return len(wrong)


FUNCTIONS = {"sqrt": np.sqrt, "log": np.log, "log10": np.log10, "exp": np.exp, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
             "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh}
POWERS = (0.5, -1.5, 2.0, -0.25, 3.0)


def check_functions(library, name, d, count):
    """Whether the error is small relative to the size of the result."""
    draw, keep, wrong = Draw(d, name), [], 0
    z = np.array([draw.complex() for _ in range(count)])
    wide = z.astype(np.clongdouble)
    forms = {f"{f}(z[i])": g(wide) for f, g in FUNCTIONS.items()} | {f"pow(z[i], {name}({p}, 0))": np.power(wide, np.clongdouble(p)) for p in POWERS}
    forms |= {"z[i] ** -2": 1 / (wide * wide), "z[i] ** -3": 1 / (wide * wide * wide), f"{name}(abs(z[i]), 0)": np.abs(wide).astype(np.clongdouble)}
    results = [np.zeros_like(z) for _ in forms]
    names = [f"r{k}" for k in range(len(forms))]
    body = "; ".join(f"{r}[i] = {text}" for r, text in zip(names, forms))
    module = library.parse(f"kernel k(z, {', '.join(names)}) {{ for i in grid_range(len(z)) {{ {body} }} }}\n")
    library.launch(module, "k", [tensor(v, name, keep) for v in (z, *results)])
    library.release(module)
    for (text, expected), got in zip(forms.items(), results):
        size = np.abs(expected)
        is_there = np.isfinite(expected) & (size < draw.info.max / 4)
        allowed = size * 2.0 ** (8 - draw.digits) + 8 * float(draw.info.smallest_subnormal)
        for k in np.flatnonzero(is_there & ~(np.abs(got.astype(np.clongdouble) - expected) <= allowed))[:3]:
            wrong += 1
            print(f"WRONG: {name}, {text} of {z[k]} = {got[k]}, and is about {expected[k]}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", required=True)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    seed = secrets.randbits(31) if arguments.seed is None else arguments.seed
    print(f"seed {seed}")
    d, wrong = random.Random(seed), 0
    np.seterr(all="ignore")
    library = Library(arguments.libdir, arguments.device)
    for _ in range(arguments.rounds):
        for name in FORMATS:
            wrong += check_loaded(library, name, d) + check_literals(library, name, d, 40)
            if np.finfo(np.longdouble).maxexp > 2000:
                wrong += check_functions(library, name, d, 500)
    print(f"{wrong} wrong")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main()

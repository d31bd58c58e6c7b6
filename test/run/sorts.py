#!/usr/bin/env python3
"""sorts.py PROGRAM [cuda]: lets sorts.c sort fresh random arrays, and compares the results with NumPy."""
import os
import random
import subprocess
import sys
import tempfile

import numpy as np

WIDE = np.dtype([("a", "u8"), ("b", "u4"), ("c", "u8", (2,))], align=True)
NUMPY = {"bool": "?", "f16": "f2", "f32": "f4", "f64": "f8", "Wide": WIDE}
DESCENDING = 2
seed = random.randrange(2**32)
rng = np.random.default_rng(seed)


def dtype_of(kind):
    return np.dtype(NUMPY.get(kind) or f"{kind[0]}{int(kind[1:]) // 8}")


def make(kind, shape):
    dtype, n = dtype_of(kind), int(np.prod(shape))
    if kind == "Wide":
        x = np.zeros(n, WIDE)
        x["a"], x["b"] = rng.integers(0, 2**63, n), rng.integers(0, 30, n)
        x["c"] = rng.integers(0, 2**63, (n, 2))
    elif kind == "bool":
        x = rng.random(n) < 0.4
    elif dtype.kind in "iu":
        few = rng.random() < 0.4
        x = rng.integers(0 if few else np.iinfo(dtype).min, 20 if few else np.iinfo(dtype).max, n, dtype, endpoint=True)
    else:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan], dtype)
        x = np.where(rng.random(n) < 0.3, rng.choice(special, n), rng.standard_normal(n).astype(dtype)).astype(dtype)
    return np.ascontiguousarray(x).reshape(shape)


def order(x, case):
    """Returns the source index of each result element along the axis."""
    if case["less"] == "by_b":
        x = x["b"]
    elif case["less"] == "by_low_bits":
        x = x & 7
    elif case["end"]:
        bits = x.view(f"u{x.itemsize}").astype("u8") ^ np.uint64(1 << (8 * x.itemsize - 1) if x.dtype.kind == "i" else 0)
        x = bits >> np.uint64(case["begin"]) & np.uint64((1 << (case["end"] - case["begin"])) - 1)
    if case["flags"] & DESCENDING:
        return np.flip(x.shape[case["axis"]] - 1 - np.argsort(np.flip(x, case["axis"]), axis=case["axis"], kind="stable"), case["axis"])
    return np.argsort(x, axis=case["axis"], kind="stable")


def cases():
    kinds = ["bool", "i8", "u8", "i16", "u16", "f16", "i32", "u32", "f32", "i64", "u64", "f64"]
    sizes = [1, 2, 100, 4096, 4097, 20000, 50000]
    for kind in kinds:
        for what in ("sort", "pairs", "argsort"):
            case = dict(what=what, type=kind, value_type="i32", less="-", axis=-1, transposed=0, in_place=0, flags=0, begin=0, end=0, planned=0, as_funcs=0)
            case["shape"] = [int(rng.choice(sizes))]
            if rng.random() < 0.5:
                case["shape"] = [[3, 40], [5, 7, 9], [300, 3], [2, 9000], [0, 4], [3, 5000]][rng.integers(6)]
                case["axis"] = int(rng.integers(-len(case["shape"]), len(case["shape"])))
                case["transposed"] = int(rng.integers(2))
            elif rng.random() < 0.3:
                case["as_funcs"] = 1
            case["flags"] = DESCENDING * int(rng.integers(2))
            case["planned"] = int(rng.integers(3))
            if what == "pairs":
                case["value_type"] = str(rng.choice(["u8", "i32", "f64", "Wide"]))
            if what == "argsort":
                case["value_type"] = str(rng.choice(["i32", "u64"]))
            elif not case["as_funcs"]:
                case["in_place"] = int(rng.integers(2))
            bits = 8 * dtype_of(kind).itemsize
            if kind[0] in "iu" and rng.random() < 0.4:
                case["less"] = "by_low_bits"
            elif kind[0] in "iu" and rng.random() < 0.3:
                case["begin"] = int(rng.integers(0, bits - 1))
                case["end"] = int(rng.integers(case["begin"] + 1, bits + 1))
            yield case
    yield dict(case, what="pairs", type="Wide", value_type="Wide", less="by_b", axis=-1, transposed=0, in_place=1, flags=0, begin=0, end=0, as_funcs=0, shape=[7000])


def check(folder, number, case, x, v):
    read = lambda ending, kind: np.fromfile(f"{folder}/{number}.{ending}", dtype_of(kind))
    seen = lambda a: a.reshape(x.shape[::-1]).T if case["transposed"] else a.reshape(x.shape)
    way = order(x, case)
    want = np.take_along_axis(x, way, case["axis"])
    # the padding of structs is not compared
    bits = lambda a: a if a.dtype == WIDE else np.ascontiguousarray(a).view("u1")
    if case["what"] != "argsort":
        np.testing.assert_array_equal(bits(seen(read("r", case["type"]))), bits(want), err_msg=f"{case}")
    got = seen(read("rv", case["value_type"]))
    if case["what"] == "argsort":
        np.testing.assert_array_equal(got, way, err_msg=f"{case}")
    elif case["what"] == "pairs":
        np.testing.assert_array_equal(bits(got), bits(np.take_along_axis(v, way, case["axis"])), err_msg=f"{case}")


def main():
    print("seed", seed)
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/lines", "w") as lines:
        made = []
        for number, case in enumerate(cases()):
            x, v = make(case["type"], case["shape"]), make(case["value_type"], case["shape"])
            made.append((number, case, x, v))
            (x.T if case["transposed"] else x).copy(order="C").tofile(f"{folder}/{number}.x")
            (v.T if case["transposed"] else v).copy(order="C").tofile(f"{folder}/{number}.v")
            names = ["what", "type", "value_type", "less", "axis", "transposed", "in_place", "flags", "begin", "end", "planned", "as_funcs"]
            words = [case[name] for name in names] + [len(case["shape"]), *case["shape"], f"{folder}/{number}"]
            print(*words, file=lines)
        lines.flush()
        subprocess.run([sys.argv[1], f"{folder}/lines", *sys.argv[2:]], check=True, timeout=500)
        for number, case, x, v in made:
            check(folder, number, case, x, v)
    print(len(made), "sorts right")


main()

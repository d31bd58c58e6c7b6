#!/usr/bin/env python3
"""Lanes of vectors that are written by their number, each by another thread: no thread may lose what another one has stored in the same vector. The expected values come from NumPy.

The vectors lie in global memory, in shared memory, in structs and in local arrays. Threads visit the lanes in a random order, so neighbouring lanes are written by threads of other warps and blocks.
"""
import argparse
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import library

TYPES = ("i32", "f32", "f64", "u8", "i16", "i64", "u32", "bool", "f16")
OPS = {"=": lambda old, x: x, "+=": lambda old, x: old + x, "*=": lambda old, x: old * x, "^=": lambda old, x: old ^ x, "max": np.maximum}

# {to}: the lane; {value}: the stored value. Thread i has position p[i] among all lanes.
KERNELS = {
    "global": "kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) {{ for i in grid_range(len(x)) {{ let at = p[i]; {body} }} }}",
    "blocks": "kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) @grid({blocks}) @block({block}) {{ let i = grid(1); if i < len(x) {{ let at = p[i]; {body} }} }}",
    "func": "func set(v, at, x) {{ {of_func} }}\nkernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) {{ for i in grid_range(len(x)) {{ set(v, p[i], x[i]) }} }}",
    "pointer": "kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) {{ let q = pointer(v[0]); for i in grid_range(len(x)) {{ let at = p[i]; {of_pointer} }} }}",
    "shared": """kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) @grid(1) @block({block}) {{
  shared s: vector({t}, {n})[{count}]
  for j in block_range({count}) {{ s[j] = v[j] }}
  syncthreads()
  for i in block_range(len(x)) {{ let at = p[i]; {of_shared} }}
  syncthreads()
  for j in block_range({count}) {{ v[j] = s[j] }}
}}""",
    "record": """struct R {{ a: i8; v: vector({t}, {n}); b: i8 }}
kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) @grid(1) @block({block}) {{
  shared s: R[{count}]
  for j in block_range({count}) {{ s[j] = R(1, v[j], 2) }}
  syncthreads()
  for i in block_range(len(x)) {{ let at = p[i]; {of_record} }}
  syncthreads()
  for j in block_range({count}) {{ v[j] = s[j].v }}
}}""",
    "local": """kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) @grid(1) @block(1) {{
  local s: vector({t}, {n})[{count}]
  for j in range({count}) {{ s[j] = v[j] }}
  for i in range(len(x)) {{ let at = p[i]; {of_shared} }}
  for j in range({count}) {{ v[j] = s[j] }}
}}""",
    "variable": """kernel k(v: vector({t}, {n})[:], x: {t}[:], p: i32[:]) @grid(1) @block({block}) {{
  for j in block_range({count}) {{
    var w = v[j]
    for i in range(len(x)) {{ let at = p[i]; if at // {n} == j {{ {of_variable} }} }}
    v[j] = w
  }}
}}""",
}


def statement(place, op, t):
    if op == "max":
        return f"atomic_max({place}, x[i])"
    return f"{place} = {place} ^ x[i]" if t == "bool" and op == "^=" else f"{place} {op} x[i]"


def make(seed):
    """Returns for a random kernel: the text, the type, the vectors, the values and the positions."""
    r, rng = random.Random(seed), np.random.default_rng(seed)
    t, n, kind = r.choice(TYPES), r.choice((2, 3, 3, 4, 4, 8, 16)), r.choice(list(KERNELS))
    ops = ["=", "=", "="] + ([] if t == "bool" else ["+=", "*="]) + (["^="] if t in ("i32", "u32", "i64", "bool") else [])
    if t in ("i32", "u32", "i64") and kind not in ("local", "variable"):
        ops.append("max")
    # there are many vectors, so that several cores access the same vectors: each core goes through all vectors with
    # another lane
    is_large = kind in ("global", "blocks", "func", "pointer") and r.random() < 0.6
    op, count = r.choice(ops), r.randint(3000, 6000) if is_large else r.randint(1, 24)
    dtype = library.NUMPY[t]
    draw = lambda size: rng.integers(0, 2, size).astype(bool) if t == "bool" else rng.integers(0, 12, size).astype(dtype)
    vectors, places = draw((count, n)), (np.arange(count * n).reshape(count, n).T.reshape(-1) if is_large else rng.permutation(count * n)).astype(np.int32)
    places = places[:r.randint(1, len(places))] if r.random() < 0.5 and not is_large else places
    x, block = draw(len(places)), r.choice((32, 64, 96))
    lane = f"[at // {n}][at % {n}]"
    texts = {"body": "v" + lane, "of_shared": "s" + lane, "of_record": f"s[at // {n}].v[at % {n}]", "of_pointer": "q" + lane, "of_variable": f"w[at % {n}]"}
    texts = {name: statement(place, op, t) for name, place in texts.items()}
    texts["of_func"] = texts["body"].replace("x[i]", "x")
    text = KERNELS[kind].format(t=t, n=n, count=count, block=block, blocks=-(-len(places) // block), **texts)
    return text, t, op, vectors, x, places


def judge(context, seed):
    text, t, op, vectors, x, places = make(seed)
    n = vectors.shape[1]
    want = vectors.copy().reshape(-1)
    want[places] = OPS[op](want[places], x)
    keep = []
    try:
        module = context.parse(text)
        try:
            context.launch(module, "k", [library.tensor_arg(vectors, t, keep, lanes=n), library.tensor_arg(x, t, keep), library.tensor_arg(places, "i32", keep)])
        finally:
            context.release(module)
    except library.Failure as failure:
        return text, str(failure)
    wrong = np.flatnonzero(vectors.reshape(-1) != want)
    return text, f"{len(wrong)} lanes, the first in v[{wrong[0] // n}][{wrong[0] % n}]: got {vectors.reshape(-1)[wrong[0]]}, expected {want[wrong[0]]}" if len(wrong) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--checks", default="", help="names of checks, separated by commas")
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    context = library.Library(options.libdir, options.device, tuple(filter(None, options.checks.split(","))), options.debug)
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        text, what = judge(context, seed)
        if what:
            wrong += 1
            print(f"--- kernel {seed}\n{text}\n{what}")
            if wrong == 5:
                break
    print(f"{options.count - wrong} of {options.count} right" if wrong < 5 else "stopped after 5 wrong kernels")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())

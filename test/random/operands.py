#!/usr/bin/env python3
"""An operand that makes no difference to the value is evaluated all the same: what is checked in it fails, and what it stores is stored, once.

Every expression that a compiler is tempted to shorten, with an operand in its place that fails a check or that counts its evaluations.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np

import library

# The text of an operand, which is an i32 or a number without a type, and the check that fails in it. None means that it
# counts in r[1].
OPERANDS = {"(x[0] // z[0])": "division", "i32(f[0] / f[1])": "division", "(m // n)": "division", "LITERALS[far]": "bounds", "bump(r)": None, "literal(r)": None, "atomic_add(r[1], 1)": None}
FEW = ("(x[0] // z[0])", "LITERALS[far]", "literal(r)")
EVALUATED = (
    "{} ** 0", "f32({}) ** 0", "c64(f32({}), 1) ** 0", "i32x2({}, 1) ** 0", "f32x4(f32({})) ** 0", "1 ** {}", "{} * 0", "0 * {}", "{} & 0", "{} % 1", "0 // ({} + 1)", "{} << 64", "0 >> {}",
    "({}, 1)[1]", "(1, {})[0]", "(1, (2, {}))[1][0]", "i32x4({}, 1, 2, 3).y", "i32x4({}, 1, 2, 3).yz", "i32x4(0, {}, 2, 3)[0]", "c64(f32({}), 1).imag", "c64(1, f32({})).real",
    "imag({})", "imag(f32({}))", "real(c64(f32({}), 1))", "conj(f32({}))", "len(i32x4({}))", "len(i32x4({}, 1, 2, 3))", "len(f32x4(i32x4({}, 1, 2, 3)))", "one({})", "one(one({}))",
    "ignore({}, 1)", "ignore(one({}), 1)", "P({}, 1).b", "P(1, {}).a", "Q(P({}, 1), 2).b", "select(true, 1, {})", "select(false, {}, 1)", "select(x[0] == 7, 1, {})", "select(x[0] != 7, {}, 1)",
    "select(i32x2(1, 2) == 1, {}, 1)", "({} > 3 ? 1 : 1)", "({} > 3 or true)", "({} > 3 and false)", "not ({} > 3)", "min({}, 1)", "(bool({}) ? 1 : 1)", "f32({}) == f32(nan)",
    "len(pick(s, {}))", "pick(s, {}).shape[0]", "pick(s, {}).ndim", "pick(s, {}).size", "pick(s, {}).strides[0]", "pick(s, {}).T.ndim", "len(pick(w, {}))", "pick(w, {}).ndim", "pick(w, {}).T.shape[1]",
    "len(s[{}])", "s[{}].ndim", "s[{}].shape[0]", "s[{}].T.strides[0]", "len(w[{}])", "w[{}].ndim", "w[{}].shape[0]", "len(w[{}, 0:2])", "w[{}, 0:2].ndim", "x[{}:2].ndim", "len(x[{}:2])",
    "reshape(x, 4, {} ** 0).ndim", "sizeof(i32) + 0 * {}", "bitcast(i32, {}) & 0", "abs({}) * 0", "unused({})", "i8({}) * 0",
)
STATEMENTS = (
    "min({}, 1)", "i32({})", "one({})", "ignore({}, 1)", "let t = {}", "let t = {} ** 0", "let t, u = {}, 1", "let t = ({}, 1)", "let t = ({}, 1)[1]", "var v = {}", "var v = 1; v = {}; v = 2", "if {} {{ }}",
    "if {} ** 0 {{ r[2] = 1 }}", "for i in range({} * 0) {{ r[2] = 1 }}", "for i in range(0, {} ** 0, 2) {{ r[2] = 1 }}", "let t = c64(f32({}), 2)", "let t = f32x4(f32({}), 2, 3, 4)", "let t = P({}, 1)",
    "let t = w[{}]", "let t = len(w[{}])", "let t = pick(s, {})", "if x[0] == 7 {{ let t = {} }}", "let t = {} + 1; if x[0] != 7 {{ r[0] = t }}", "let t = 0 * {}; if x[0] != 7 {{ r[0] = i32(t) }}",
    "let t = {} ** 0; if x[0] != 7 {{ r[0] = i32(t) }}", "let t = {}; if x[0] != 7 {{ r[0] = i32(t) }}",
)
NOT_EVALUATED = ("true or {} > 3", "false and {} > 3", "(true ? 1 : {})", "(false ? {} : 1)", "(x[0] == 7 ? 1 : {})", "x[0] == 7 or {} > 3", "x[0] != 7 and {} > 3", "i32(dtype({}) == i32)")

TEXT = """
const LITERALS = {{ 1, 2, 3 }}
struct P {{ a: i32; b: i32 }}
struct Q {{ p: P; b: i32 }}
func bump(r) {{ r[1] = r[1] + 1; return r[1] }}
func literal(r) {{ r[1] = r[1] + 1; return 1 }}
func one(v) {{ return 1 }}
func ignore(v, u) {{ return u }}
func pick(s, v) {{ return s }}
func unused(v) {{ let t = v; return 0 }}
func use(v) {{ let t = (v, v) }}
kernel k(r, x: i32[:], z: i32[:], f: f32[:], w: f32[:, :], far: i32, m, n) @grid(1) @block(1) {{
  shared s: f32[4, 4]
  {}
  r[2] = 5
}}
"""


def arguments(keep):
    arrays = [(np.zeros(3, np.int32), "i32"), (np.array([7, 1, 2, 3], np.int32), "i32"), (np.zeros(4, np.int32), "i32"), (np.array([1, 0], np.float32), "f32"), (np.ones((4, 4), np.float32), "f32")]
    return arrays[0][0], [library.tensor_arg(a, t, keep) for a, t in arrays] + [library.scalar_arg(100, "i32", keep), library.number_arg(7), library.number_arg(0)]


def judge(context, statement, check, is_evaluated):
    """Returns what is wrong, or None."""
    keep = []
    r, args = arguments(keep)
    failed = None
    try:
        module = context.parse(TEXT.format(statement))
        try:
            context.launch(module, "k", args)
        finally:
            context.release(module)
    except library.Failure as failure:
        failed = str(failure)
    if check is None:
        if failed:
            return failed
        return None if r[1] == is_evaluated and r[2] == 5 else f"evaluated {r[1]} times, expected {int(is_evaluated)}"
    if not is_evaluated:
        return failed
    if not failed:
        return f"the check of {check} should have failed"
    return None if failed.startswith("KJIT_ERROR_KERNEL") else failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--libdir", default=os.environ.get("KJIT_LIBDIR", "."), help="the folder of libkjit.so")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--debug", action="store_true", help="code that is not optimized")
    options = parser.parse_args()
    context = library.Library(options.libdir, options.device, ("bounds", "division"), options.debug)
    cases = [(f"let t = {e}", OPERANDS, True) for e in EVALUATED] + [(f"use({e})", FEW, True) for e in EVALUATED]
    cases += [(s, OPERANDS, True) for s in STATEMENTS] + [(f"let t = {e}", OPERANDS, False) for e in NOT_EVALUATED]
    wrong = done = 0
    for form, operands, is_evaluated in cases:
        for operand in operands:
            what = judge(context, form.format(operand), OPERANDS[operand], is_evaluated)
            done += 1
            if what:
                wrong += 1
                print(f"{form.format(operand)}: {what}")
    print(f"{done - wrong} of {done} right")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())

"""Modules whose declarations refer to each other, with more of them than any limit allows. chains.py KIND prints one
module."""
import sys

COUNT = 20000


def constants():
    return ["const A0 = 1"] + [f"const A{i + 1} = A{i} + 1" for i in range(COUNT)] + [f"kernel k(x) {{ x[0] = A{COUNT} }}"]


def constants_backwards():
    return [f"const A{i} = A{i + 1} + 1" for i in range(COUNT)] + [f"const A{COUNT} = 1", "kernel k(x) { x[0] = A0 }"]


def structs():
    return ["struct S0 { a: i32 }"] + [f"struct S{i + 1} {{ a: S{i} }}" for i in range(COUNT)] + ["kernel k(x) { x[0] = 1 }"]


def extents():
    """Each constant uses the next one twice. Evaluating it for each use would take 2 to the power of 60 steps."""
    return [f"const A{i} = A{i + 1} + A{i + 1}" for i in range(60)] + ["const A60 = 0", "struct S { a: i32[A0 + 1] }", "kernel k(x) { x[0] = zero(S).a[0] }"]


def tuples():
    return [f"func f{i}(a) {{ return f{i + 1}((a, a)) }}" for i in range(40)] + ["func f40(a) { return 1 }", "kernel k(x) { x[0] = f0(x[0]) }"]


print("\n".join(globals()[sys.argv[1]]()))

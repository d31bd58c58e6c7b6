#!/usr/bin/env python3
"""Makes lib/typing/numba.def, the operand and result types of Numba's operators, from the typing context of numba-cuda. The
script needs the wheel of numba-cuda, but no GPU: `pip install numba numba-cuda`. With --check, prints the differences between the
recorded table and the installed Numba, and exits 1.

A row stands for all pairs of a type in its first set and a type in its second set. Numba converts the operands to the types
in the next two columns, and the result has the type in the last column."""
import argparse
import math
import operator
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "lib/typing/numba.def"
NAMES = {"BOOL": "boolean", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64",
         "F16": "float16", "F32": "float32", "F64": "float64", "C64": "complex64", "C128": "complex128"}
# Functions of one key have the same rows.
BINARY = {
    "ARITHMETIC": [operator.add, operator.sub, operator.mul, operator.iadd, operator.isub, operator.imul],
    "DIVIDE": [operator.truediv],
    "FLOOR_DIVIDE": [operator.floordiv, operator.mod],
    "POWER": [operator.pow],
    "SHIFT": [operator.lshift, operator.rshift, operator.ilshift, operator.irshift],
    "BITS": [operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor],
    "EQUAL": [operator.eq, operator.ne],
    "ORDER": [operator.lt, operator.le, operator.gt, operator.ge],
    "RANGE": [range],
    "ANGLE": [math.atan2, math.hypot],
    "REMAINDER": [math.fmod, math.copysign],
    "RAISE": [math.pow],
}
UNARY = {
    "SIGN": [operator.neg, operator.pos],
    "INVERT": [operator.invert],
    "ABSOLUTE": [abs],
    "START": [range],
    "MATH": [math.sqrt, math.exp, math.log, math.sin, math.cos, math.fabs],
}
HEAD = """/* The types of Numba's operators. N2(KEY, first, second, as first, as second, result) applies to
 * operands whose types are in the sets "first" and "second". It converts the operands to the types
 * "as first" and "as second". N1(KEY, operand, as, result) is for operators with one operand. Numba
 * rejects operands for which no row exists. JOIN gives the type of a variable to which values of
 * both types are assigned. Generated from numba-cuda %s by scripts/make-numba-typing.py; do not
 * edit. */
"""


class Numba:
    def __init__(self):
        warnings.simplefilter("ignore")
        import numba_cuda
        from numba.cuda import types
        from numba.cuda.descriptor import cuda_target
        self.version = numba_cuda.__version__
        self.context = cuda_target.typing_context
        self.context.refresh()
        cuda_target.target_context.refresh()
        self.types = {name: getattr(types, full) for name, full in NAMES.items()}
        self.names = {t: name for name, t in self.types.items()}

    def name(self, numba_type):
        return self.names.get(numba_type) or self.names[numba_type.dtype]  # for a range, the type of its numbers

    def signature(self, function, operands):
        """Returns (operand types, result type), or None if Numba rejects the operands."""
        try:
            found = self.context.resolve_function_type(function, tuple(self.types[t] for t in operands), {})
        except Exception as error:  # Numba's errors have several classes; any other error is a fault of this script
            if not type(error).__module__.startswith("numba"):
                raise
            return None
        return found and (*(self.names[t] for t in found.args), self.name(found.return_type))

    def all(self, function, count):
        operands = [(a,) for a in NAMES] if count == 1 else [(a, b) for a in NAMES for b in NAMES]
        if function is range:  # Numba truncates floats here, but kjit rejects them
            operands = [o for o in operands if not any(t[0] in "FC" for t in o)]
        return {o: found for o in operands if (found := self.signature(function, o))}

    def joins(self):
        found = {(a, b): self.context.unify_pairs(x, y) for a, x in self.types.items() for b, y in self.types.items()}
        return {o: (self.names[t],) * 3 for o, t in found.items() if t is not None}


def one_table(numba, functions, count):
    tables = [numba.all(function, count) for function in functions]
    for function, table in zip(functions, tables):
        if table != tables[0]:
            raise SystemExit(f"{function} is not typed as {functions[0]}: give it a key of its own")
    return tables[0]


def joined(names):
    return " | ".join(f"T({n})" for n in NAMES if n in names)


def rows(key, table):
    """Returns the pairs of one signature as products of sets. First operands with the same set of second operands form one
    product."""
    lines = []
    for signature in dict.fromkeys(table.values()):
        operands = [o for o, found in table.items() if found == signature]
        if len(operands[0]) == 1:
            lines.append(f"N1({key}, {joined({o[0] for o in operands})}, {', '.join(signature)})")
            continue
        seconds = {a: frozenset(y for x, y in operands if x == a) for a in NAMES}
        for second in dict.fromkeys(s for s in seconds.values() if s):
            first = {a for a in NAMES if seconds[a] == second}
            lines.append(f"N2({key}, {joined(first)}, {joined(second)}, {', '.join(signature)})")
    return lines


def make(numba):
    lines = []
    for key, functions in BINARY.items():
        lines += rows(key, one_table(numba, functions, 2))
    lines += rows("JOIN", numba.joins())
    for key, functions in UNARY.items():
        lines += rows(key, one_table(numba, functions, 1))
    return HEAD % numba.version + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, change nothing")
    check = parser.parse_args().check
    made = make(Numba())
    if not check:
        TABLE.write_text(made)
        return 0
    recorded, new = set(TABLE.read_text().splitlines()), set(made.splitlines())
    for line in sorted(recorded ^ new):
        print("recorded:" if line in recorded else "Numba has:", line)
    return int(recorded != new)


if __name__ == "__main__":
    sys.exit(main())

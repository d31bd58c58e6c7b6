#!/usr/bin/env python3
"""Functions, filters and group-bys of columns with nulls, checked against pyarrow on fresh random data: pyarrow arrays are
exchanged through Arrow's C data interface, without a copy on the CPU."""
import argparse
import math
import os
import secrets
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from columns import AGGREGATIONS, DROP_NULL_KEYS, Engine, Error

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TIMES = [pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.timestamp("us", tz="Europe/Berlin"), pa.timestamp("s"), pa.duration("ns")]
TYPES = [*INTEGERS, pa.float16(), pa.float32(), pa.float64(), pa.bool_(), *TIMES]

FUNCTIONS = """
func plus(a, b) { return a + b }
func weighted(a, b) { return f64(a) * 0.5 + f64(b) }
func is_less(a, b) { return a < b }
func both(a, b) { return a and b }
func same(a) { return a }
func large(a) { return a > 40 }

# Of pairs (value, is_valid): the first one that is there; 1 for a null; SQL's `or`, where true or null is true.
func coalesce(a, b) { return a[1] ? a[0] : b[0], a[1] or b[1] }
func is_null(a) { return a[1] ? 0u8 : 1u8, true }
func kleene_or(a, b) {
  let is_true = (a[0] and a[1]) or (b[0] and b[1])
  return is_true, is_true or (a[1] and b[1])
}
"""


class Check:

    def __init__(self, options):
        self.engine = Engine(options.library, options.device)
        self.seed = secrets.randbits(31) if options.seed is None else options.seed
        self.rng = np.random.default_rng(self.seed)
        self.rows = options.rows
        self.count = 0
        handled = ("coalesce", "is_null", "kleene_or")
        single = ("same", "large", "is_null")
        names = [line.split()[1].split("(")[0] for line in FUNCTIONS.splitlines() if line.startswith("func ")]
        self.functions = {name: self.engine.define(FUNCTIONS, name, 1 if name in single else 2, "handled" if name in handled else "propagate") for name in names}
        self.functions["computed"] = self.engine.define(FUNCTIONS, "weighted", 2, "computed")

    # ---- data ----

    def array(self, type, rows, nulls=0.3, low=0, high=100):
        """Returns a pyarrow array. At random it is a slice of a longer array, whose offset is usually not a multiple of 8."""
        before, behind = self.rng.integers(0, 20, 2) if self.rng.integers(0, 3) else (0, 0)
        values = self.rng.integers(low, high, before + rows + behind)
        if pa.types.is_floating(type):
            values = (values / 4).astype(f"f{type.bit_width // 8}")
        elif pa.types.is_boolean(type):
            values = values % 2 == 0
        elif type == pa.date64():
            values = values * 86400000
        if type in TIMES:
            values = pa.array(values.astype(np.int32 if type.bit_width == 32 else np.int64)).view(type)
            made = pc.if_else(self.rng.random(len(values)) >= nulls, values, pa.scalar(None, type)) if nulls else values
        else:
            made = pa.array(values, type, mask=self.rng.random(len(values)) < nulls if nulls else None)
        # The memory belongs to pyarrow. If it belonged to NumPy, a thread of pyarrow's pool that releases it when Python ends
        # would abort.
        return pa.concat_arrays([made, made[:0]]).slice(before, rows)

    # ---- comparison ----

    def same(self, what, got, expected):
        got = pa.array(got)
        got.validate(full=True)
        self.count += 1
        if got.type == expected.type and len(got) == len(expected) and got.null_count == expected.null_count and all(map(equal, items(got), items(expected))):
            return
        sys.exit(f"{what} (seed {self.seed}): expected {expected.type} {items(expected)[:20]}, got {got.type} {items(got)[:20]}")

    # ---- what is checked ----

    def exchange(self, a):
        self.same(f"exchange of {a.type}", self.engine.take(a), a)
        if a.type not in TIMES:
            self.same(f"a copy of {a.type}", self.functions["same"](self.engine.take(a)), a)

    def apply(self, a, b):
        f, x, y = self.functions, self.engine.take(a), self.engine.take(b)
        real_a, real_b = (v.cast(pa.float64()) for v in (a, b))
        for name in ("weighted", "computed"):
            self.same(f"{name} of {a.type}, {b.type}", f[name](x, y), pc.add(pc.multiply(real_a, 0.5), real_b))
        self.same(f"is_less of {a.type}, {b.type}", f["is_less"](x, y), pc.less(real_a, real_b))
        self.same(f"is_null of {a.type}", f["is_null"](x), pc.is_null(a).cast(pa.uint8()))
        if a.type == b.type:
            self.same(f"coalesce of {a.type}", f["coalesce"](x, y), pc.coalesce(a, b))
        if a.type == b.type and a.type in (pa.int32(), pa.int64(), pa.float32(), pa.float64()):
            self.same(f"plus of {a.type}", f["plus"](x, y), pc.add(a, b))

    def logic(self, a, b):
        f, x, y = self.functions, self.engine.take(a), self.engine.take(b)
        self.same("and", f["both"](x, y), pc.and_(a, b))
        self.same("or of SQL", f["kleene_or"](x, y), pc.or_kleene(a, b))

    def filter(self, a, others):
        flags = pc.greater(a.cast(pa.float64()), 40)
        results = self.engine.filter(self.functions["large"], [self.engine.take(a)], [self.engine.take(v) for v in others])
        for result, v in zip(results, others):
            self.same(f"filter of {v.type} by {a.type}", result, v.filter(flags))

    def group(self, keys, values, drops):
        columns = [self.engine.take(v) for v in values]
        kinds = [[k for k in AGGREGATIONS if is_aggregated(v.type, k)] for v in values]
        results = self.engine.group([self.engine.take(k) for k in keys], [(c, k) for c, of in zip(columns, kinds) for k in of], DROP_NULL_KEYS if drops else 0)
        names = [f"k{i}" for i in range(len(keys))]
        table = pa.table([*keys, *values], [*names, *(f"v{i}" for i in range(len(values)))])
        if drops:
            table = table.filter(pc.invert(pc.is_null(keys[0]))) if len(keys) == 1 else table.drop_null() if not values else table.filter(
                pc.invert(pc.or_(pc.is_null(keys[0]), pc.is_null(keys[1]))))
        expected = table.group_by(names, use_threads=False).aggregate([(f"v{i}", k) for i, of in enumerate(kinds) for k in of])
        expected = expected.sort_by([(name, "ascending") for name in names]).combine_chunks()  # nulls come last in the order
        wanted = [*names, *(f"v{i}_{k}" for i, of in enumerate(kinds) for k in of)]
        for name, result in zip(wanted, results):
            column = expected.column(name)
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
            self.same(f"{name} of groups by {[str(k.type) for k in keys]}, values {[str(v.type) for v in values]}, nulls {'dropped' if drops else 'a group'}", result, column)

    def refuse(self, message, call, *arguments):
        self.count += 1
        try:
            call(*arguments)
        except Error as error:
            if message in str(error):
                return
            sys.exit(f"refused with another message than {message!r}: {error}")
        sys.exit(f"not refused: {message}")

    def refusals(self):
        e, number = self.engine, self.engine.take(pa.array([1, 2, 3]))
        self.refuse('"u"', e.take, pa.array(["a"]))
        self.refuse('"+l"', e.take, pa.array([[1]]))
        self.refuse('"vu"', e.take, pa.array(["a"], pa.string_view()))
        self.refuse('"d:5,2"', e.take, pa.array([1], pa.decimal128(5, 2)))
        self.refuse('"n"', e.take, pa.nulls(3))
        self.refuse("dictionary", e.take, pa.array(["a", "b"]).dictionary_encode())
        self.refuse("has 2 rows", self.functions["plus"], number, e.take(pa.array([1, 2])))
        self.refuse("the function takes 1 operand, got 2", self.functions["same"], number, number)
        self.refuse("plus", e.define, FUNCTIONS, "plus", 3)
        self.refuse("minus", e.define, FUNCTIONS, "minus", 2)
        self.refuse("does not return bool", e.filter, self.functions["same"], [number], [number])
        self.refuse("no sum", e.group, [number], [(e.take(pa.array([1, 2, 3]).cast(pa.timestamp("s"))), "sum")])

    def run(self):
        for type in TYPES:
            for rows, nulls in ((self.rows, 0.3), (13, 0), (5, 1), (0, 0)):
                self.exchange(self.array(type, rows, nulls))
        pick = lambda types: types[self.rng.integers(len(types))]
        numbers = [pa.int8(), pa.int32(), pa.uint64(), pa.float32(), pa.float64()]
        one, other, key, real_key, value, kept = (pick(types) for types in (numbers, TYPES, [*INTEGERS, *TIMES, pa.bool_()], [pa.int64(), pa.float64()], [*INTEGERS, pa.float32(), pa.float64()],
                                                                           [pa.bool_(), *TIMES]))
        for rows, nulls in ((self.rows, 0.3), (self.rows, 0), (9, 0.5), (3, 1), (0, 0.3)):
            a, b = self.array(one, rows, nulls), self.array(one, rows, 0.2)
            self.apply(a, b)
            self.logic(self.array(pa.bool_(), rows, nulls), self.array(pa.bool_(), rows, 0.3))
            self.filter(a, [a, self.array(other, rows), self.array(pa.bool_(), rows, nulls)])
            keys = [self.array(key, rows, nulls, high=30), self.array(real_key, rows, 0.1, low=-3, high=3)]
            values = [self.array(value, rows, 0.4), self.array(kept, rows, nulls)]
            self.group(keys[:1], values, False)
            self.group(keys, values[:1], bool(self.rng.integers(2)))
        self.wide_keys(value)
        self.late_keys(value)
        self.refusals()
        print(f"columns: seed {self.seed}, {self.count} results are those of pyarrow {pa.__version__}")

    def late_keys(self, value):
        """Returns keys. The nulls, and some of the keys, occur only in the last rows."""
        rows = 20 * self.rows
        keys = self.rng.choice([-3, 4, 5], rows)
        keys[-9:] = self.rng.choice([-2, 4, 7], 9)
        missing = np.arange(rows) >= rows - int(self.rng.integers(4))
        values = self.array(value, rows, 0.4)
        for type in (pa.int8(), pa.int64()):
            self.group([pa.array(keys, type, mask=missing)], [values], bool(self.rng.integers(2)))
            self.group([pa.array(keys, type, mask=missing).slice(3)], [values.slice(3)], False)

    def wide_keys(self, value):
        """Returns keys that use all bits of their type, and nulls."""
        few = self.rng.integers(-2**63, 2**63 - 1, 7)
        few[:2] = -2**63, 2**63 - 1
        keys = pa.array(self.rng.choice(few, self.rows), pa.int64(), mask=self.rng.random(self.rows) < 0.1)
        reals = pa.array(self.rng.choice([math.nan, math.inf, -math.inf, 0.0, -1.5, 1e300], self.rows), mask=self.rng.random(self.rows) < 0.1)
        values = self.array(value, self.rows, 0.4)
        self.group([keys], [values], False)
        self.group([keys, reals], [values], False)


def is_aggregated(type, kind):
    """Returns whether pyarrow has this aggregation for the type: it has min and max for times but not for durations."""
    return type != pa.float16() and (type not in TIMES or kind == "count" or kind in ("min", "max") and not pa.types.is_duration(type))


def items(array):
    return (array.view(pa.int32() if array.type.bit_width == 32 else pa.int64()) if array.type in TIMES else array).to_pylist()


def equal(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-12)
    return a == b


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="libcolumns.so", help="the columns library")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=None, help="repeat a run that printed this seed")
    Check(parser.parse_args()).run()


if __name__ == "__main__":
    main()

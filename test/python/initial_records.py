# RUN: %kjit-python %s
"""Reductions and scans of records with an initial record, compared with Python loops."""
import kjit
import numpy as np
import seeds

random = seeds.fresh_generator()


def best(a, b):
    return a if a.key >= b.key else b


def fold(initial, rows):
    found = [initial]
    for row in rows:
        found.append(found[-1] if found[-1]["key"] >= row["key"] else row)
    return found


equal = np.testing.assert_array_equal
offsets = np.array([0, 7, 7, 40])
keys = np.repeat([1, 2, 1], [7, 3, 30])
for dtype in (
    np.dtype([("key", "i4"), ("value", "f8")]),
    np.dtype([("key", "i4"), ("value", "f8")], align=True),
    np.dtype([("value", "f4", (3,)), ("inner", [("a", "u1"), ("b", "i2")]), ("key", "f4"), ("name", "S3")]),
    np.dtype([("when", "M8[s]"), ("key", "i8")]),
):
    x = np.zeros(40, dtype)
    x["key"] = random.permutation(40)
    one = np.zeros(3, dtype)
    one["key"] = (-1, 20, 99)
    for start in one:
        expected = np.array(fold(start, x), dtype)
        frozen = np.array(start, dtype)
        frozen.flags.writeable = False
        for initial in start, np.array(start, dtype), frozen, kjit.array(np.array(start, dtype), device="cpu"):
            assert kjit.reduce(x, best, initial=initial) == expected[-1]
        assert kjit.reduce(x[:0], best, initial=start) == start
        rows = x.reshape(4, 10)
        equal(kjit.reduce(rows, best, axis=1, initial=start), np.array([fold(start, row)[-1] for row in rows], dtype))
        equal(kjit.scan(x, best, initial=start), expected[1:])
        equal(kjit.scan(x, best, exclusive=True, initial=start), expected[:-1])
        parts = [fold(start, x[low:high]) for low, high in zip(offsets, offsets[1:])]
        equal(kjit.reduce_segments(x, offsets, best, initial=start), np.array([part[-1] for part in parts], dtype))
        scanned = np.array([each for part in parts for each in part[:-1]], dtype)
        equal(kjit.scan_segments(x, offsets, best, exclusive=True, initial=start), scanned)
        parts = [fold(start, part) for part in (x[:7], x[7:10], x[10:])]
        found, results = kjit.reduce_by_key(keys, x, best, initial=start)
        assert found.tolist() == [1, 2, 1]
        equal(results, np.array([part[-1] for part in parts], dtype))
        scanned = np.array([each for part in parts for each in part[1:]], dtype)
        equal(kjit.scan_by_key(keys, x, best, initial=start), scanned)
    # A plan uses the initial value of the call that created it.
    record = one.copy()[2]
    plan = kjit.reduce(x, best, initial=record, plan=True)
    record["key"] = -1
    plan.run()
    assert plan.result[()] == one[2]
    assert kjit.vectorize(best).reduce(x, initial=one[2]) == one[2]

"""Reductions and scans of segments and by key, with named operators and with funcs."""
import itertools

import numpy as np

import operators
import values
from cases import Case, cases, large_case, some_cases

OFFSETS = ("i4", "i8", "u4", "u8", "i4")
NAMED = ("any", "all", "count_nonzero", "mean", "var", "std")
IDENTITY = {"add": 0, "mul": 1, "or": 0, "xor": 0, "and": -1}


def lengths_of(rng, n):
    """Returns lengths with the sum n. Runs of equal kinds follow each other: empty, short, long, and nearly all elements."""
    made, left = [], n
    while left > 0 or not made:
        kind = int(rng.integers(5))
        if kind == 0:
            more = np.zeros(rng.integers(1, 40), "i8")
        elif kind == 1:
            more = rng.integers(0, 3, rng.integers(1, 60))
        elif kind == 2:
            more = rng.integers(0, 40, rng.integers(1, 30))
        elif kind == 3:
            more = np.array([left // 2])
        else:
            more = rng.integers(1, left // 8 + 2, 3)
        more = more[np.cumsum(more) <= left]
        made.append(more)
        left -= int(more.sum())
    return np.concatenate(made)


def offsets_of(rng, n, outside=False):
    first, last = (int(rng.integers(0, n // 4 + 1)), n - int(rng.integers(0, n // 4 + 1))) if outside else (0, n)
    return first + np.concatenate([[0], np.cumsum(lengths_of(rng, last - first))])


def typed(rng, offsets):
    kinds = [kind for kind in OFFSETS + ("u1", "i2") if offsets[-1] <= np.iinfo(kind).max]
    return offsets.astype(str(rng.choice(kinds)))


def pieces(x, offsets):
    return [x[a:b] for a, b in zip(offsets[:-1], offsets[1:])]


def fold(combine, x):
    """Combines the elements in order. It combines neighbouring pairs first, which requires an associative operator."""
    while len(x) > 1:
        rest = x[len(x) // 2 * 2:]
        x = np.concatenate([combine(x[0:len(x) - 1:2], x[1::2]), rest])
    return x[0]


def prefixes(combine, x):
    x, step = x.copy(), 1
    while step < len(x):
        x = np.concatenate([x[:step], combine(x[:-step], x[step:])])
        step *= 2
    return x


def reduced(combine, x, offsets, empty, dtype):
    made = np.empty(len(offsets) - 1, dtype)
    with np.errstate(all="ignore"):
        for i, part in enumerate(pieces(x, offsets)):
            made[i] = fold(combine, part) if len(part) else empty
    return made


def scanned(combine, x, offsets, start, before, like):
    """before: the value that represents the elements before the first element of an exclusive scan, or None. start: the value
    that is combined before all elements."""
    made = like.copy()
    with np.errstate(all="ignore"):
        for a, b in zip(offsets[:-1], offsets[1:]):
            if b > a:
                upto = prefixes(combine, x[a:b])
                if before is not None:
                    upto = np.concatenate([[before], upto[:-1]]).astype(upto.dtype) if start is None else np.concatenate([upto[:0], upto[:-1]])
                if start is not None:
                    upto = combine(np.repeat(start, len(upto)), upto)
                    if before is not None:
                        upto = np.concatenate([start, upto])
                made[a:b] = upto
    return made


def wide(name, x, kind):
    return x.astype("f4") if kind == "f2" else x.astype(operators.expected_type(name, kind))


def random_operator(rng):
    while True:
        name, kind = str(rng.choice([n for n in operators.NAMED if n != "logaddexp"])), str(rng.choice([k for k in values.TYPES if k != "bf16"]))
        if operators.takes(name, kind):
            return name, kind


# ---- segments ----

def reduce_case(rng, name, kind, n, label, outside=False):
    x, offsets = operators.numbers_for(rng, name, n, kind), offsets_of(rng, n, outside)
    option, initial = "", None
    if name not in IDENTITY or rng.random() < 0.3:
        option, initial = ", initial=1", 1
    dtype = operators.expected_type(name, kind)
    combine = operators.NAMED[name]
    want = reduced(combine, wide(name, x, kind), offsets, np.array(IDENTITY.get(name, 0)).astype(dtype), dtype)
    if initial is not None:
        with np.errstate(all="ignore"):
            want = np.where(np.diff(offsets) > 0, combine(want, np.ones(1, want.dtype)), np.ones(1, want.dtype)).astype(dtype)
    return Case(f"{label} reduce {name} {kind} {n}{option}", f"{{r}} = reduce_segments({{x}}, {{o}}, {name}{option})", x=x, o=typed(rng, offsets)).expect("r", want)


def scan_case(rng, name, kind, n, label, outside=False):
    x, offsets = operators.numbers_for(rng, name, n, kind), offsets_of(rng, n, outside)
    dtype = operators.expected_type(name, kind)
    exclusive, given = rng.random() < 0.5, kind != "?" and rng.random() < 0.3
    if exclusive and (name not in IDENTITY or kind in ("?", "u1", "u2", "u4", "u8")):
        given = kind != "?"
        exclusive = given
    option = (", exclusive=true" if exclusive else "") + (", initial=1" if given else "")
    start = np.ones(1, wide(name, x, kind).dtype) if given else None
    like = np.zeros(n, dtype)
    want = scanned(operators.NAMED[name], wide(name, x, kind), offsets, start, IDENTITY.get(name, 0) if exclusive else None, like)
    case = Case(f"{label} scan {name} {kind} {n}{option}", f"{{r}} = scan_segments({{x}}, {{o}}, {name}{option})", x=x, o=typed(rng, offsets), r=like)
    return case.expect("r", want)


@some_cases(5)
def all_types(rng):
    for _ in range(40):
        name, kind = random_operator(rng)
        make = (reduce_case, scan_case)[rng.integers(2)]
        yield make(rng, name, kind, int(rng.integers(1, 4000)), "type", rng.random() < 0.5)


@some_cases(4)
def sizes(rng):
    for n in values.BORDERS + values.LARGE[:3]:
        yield reduce_case(rng, "add", "i4", n, "size")
        yield scan_case(rng, "add", "i4", n, "size")


def long_lengths(rng, n):
    """Segments with a thousand or more elements on average: one segment has half of all elements and lies between empty
    segments; some have a power of two elements; all are alike."""
    way = int(rng.integers(3))
    if way == 0:
        made = np.concatenate([np.zeros(50, "i8"), [n // 2], np.zeros(rng.integers(1, 60), "i8"), rng.integers(0, 2000, n // 2000)])
    elif way == 1:
        made = 2 ** rng.integers(8, 15, n // 3000) + rng.integers(-1, 2, n // 3000) * int(rng.integers(0, 2))
    else:
        made = np.full(n // 4096, 4096)
    return made[np.cumsum(made) <= n]


def sums_between(x, offsets):
    sums = np.concatenate([[0], np.cumsum(x, dtype="i8")])
    return sums[offsets[1:]] - sums[offsets[:-1]]


@cases
def many(rng):
    for average in (1, 8, 1000, "nearly all in one"):
        n = int(rng.integers(200000, 400000))
        cuts = np.sort(rng.integers(0, n + 1, n // average)) if average != "nearly all in one" else np.array([0, 0, int(rng.integers(1, 99)), n - int(rng.integers(1, 99)), n])
        offsets = np.concatenate([[0], cuts, [n]])
        x = rng.integers(-100, 100, n, np.int32)
        sums = np.concatenate([[0], np.cumsum(x, dtype="i8")])
        yield Case(f"{average} on average", "{r} = reduce_segments({x}, {o}, add)", x=x, o=offsets).expect("r", sums_between(x, offsets))
        scan = sums[1:] - np.repeat(sums[offsets[:-1]], np.diff(offsets))
        yield Case(f"scan, {average} on average", "{r} = scan_segments({x}, {o}, add)", x=x, o=offsets).expect("r", scan)


@cases
def long(rng):
    for _ in range(3):
        n, kind = int(rng.integers(300000, 1500000)), str(rng.choice(["i4", "u1", "i8"]))
        x = rng.integers(0, 100, n).astype(kind)
        first = int(rng.integers(0, 5000)) * int(rng.integers(0, 2))
        offsets = first + np.concatenate([[0], np.cumsum(long_lengths(rng, n - first))])
        yield Case(f"long {kind}", "{r} = reduce_segments({x}, {o}, add)", x=x, o=typed(rng, offsets)).expect("r", sums_between(x, offsets).astype(operators.expected_type("add", kind)))
        some = offsets[np.concatenate([[True], np.diff(offsets) > 0])]
        least = [int(np.argmin(part)) for part in pieces(x, some)]
        yield Case(f"long argmin {kind}", "{r} = reduce_segments({x}, {o}, argmin)", x=x, o=typed(rng, some)).expect("r", np.array(least, "i8"))


@some_cases(3)
def named(rng):
    for name, kind in itertools.product(NAMED + ("argmin", "argmax"), ("?", "i2", "u8", "f2", "f4", "f8", "c16")):
        if kind == "c16" and name not in ("any", "all", "count_nonzero", "mean"):
            continue
        n = int(rng.integers(1, 3000))
        x, offsets = values.small_numbers(rng, n, kind), offsets_of(rng, n, rng.random() < 0.3)
        if name.startswith("arg"):
            offsets = np.unique(offsets) if offsets[-1] > offsets[0] else np.array([0, n])
        with np.errstate(all="ignore"):
            made = [getattr(np, name)(part) if len(part) or name in ("any", "all", "count_nonzero") else np.nan for part in pieces(x.astype("f4") if kind == "f2" else x, offsets)]
        dtype = {"any": "?", "all": "?", "count_nonzero": "i8", "argmin": "i8", "argmax": "i8"}.get(name) or (x.dtype if x.dtype.kind in "fc" else "f8")
        tolerance = {} if np.dtype(dtype).kind in "?i" else {"rtol": 2e-3 if kind == "f2" else 1e-5, "atol": 1e-3 if kind == "f2" else 1e-5}
        case = Case(f"{name} {kind} {n}", f"{{r}} = reduce_segments({{x}}, {{o}}, {name})", x=x, o=typed(rng, offsets))
        yield case.expect("r", np.array(made).astype(dtype), **tolerance)


@some_cases(3)
def structs(rng):
    for n in (1, 9001):
        x, y, offsets = operators.affines(rng, n), operators.tagged(rng, n), offsets_of(rng, n)
        start = operators.affines(rng, 1)
        given = [("x", x, "Affine"), ("f", start, "Affine"), ("o", typed(rng, offsets), None)]
        whole = reduced(operators.then, x, offsets, start[0], x.dtype)
        whole[np.diff(offsets) > 0] = operators.then(np.repeat(start, (np.diff(offsets) > 0).sum()), whole[np.diff(offsets) > 0])
        yield with_arrays(Case(f"struct {n}", "{r} = reduce_segments({x}, {o}, then, initial={f}[0])"), given).expect("r", whole)
        own = reduced(operators.then, x, offsets, operators.NO_CHANGE, x.dtype)
        yield with_arrays(Case(f"struct {n}, from the identity", "{r} = reduce_segments({x}, {o}, then)"), given[::2]).expect("r", own)
        after = scanned(operators.then, x, offsets, None, operators.NO_CHANGE, x)
        yield with_arrays(Case(f"exclusive scan of a struct {n}, from the identity", "{r} = scan_segments({x}, {o}, then, exclusive=true)"), given[::2]).expect("r", after)
        upto = scanned(operators.then, x, offsets, None, None, x)
        yield with_arrays(Case(f"scan of a struct {n}", "{r} = scan_segments({x}, {o}, then)"), given[::2]).expect("r", upto)
        after = scanned(operators.then, x, offsets, start, True, x)
        yield with_arrays(Case(f"exclusive scan of a struct {n}", "{r} = scan_segments({x}, {o}, then, exclusive=true, initial={f}[0])"), given).expect("r", after)
        given = [("x", y, "Tagged"), ("o", typed(rng, np.unique(np.append(offsets, n))), None)]
        offsets = given[1][1].astype("i8")
        if len(offsets) > 1:
            yield with_arrays(Case(f"struct of 40 bytes {n}", "{r} = reduce_segments({x}, {o}, later)"), given).expect("r", reduced(operators.later, y, offsets, None, y.dtype))


def with_arrays(case, arrays):
    for name, value, kind in arrays:
        case.array(name, value, kind)
    return case


@some_cases(5)
def segment_options(rng):
    x, offsets = values.small_numbers(rng, 3000, "f4"), offsets_of(rng, 3000)
    inside = offsets_of(rng, 1500)
    o = typed(rng, offsets)
    yield Case("in place", "scan_segments({x}, {o}, add)", x=x, o=o).expect("x", scanned(np.add, x, offsets, None, None, x))
    yield Case("views", "{r} = reduce_segments({x}[::-2], {o}[::-1], add)", x=x, o=typed(rng, inside)[::-1].copy()).expect("r", reduced(np.add, x[::-2], inside, 0, "f4"))
    yield Case("into f64", "{r} = reduce_segments({x}, {o}, add)", x=x, o=o, r=np.zeros(len(o) - 1)).expect("r", reduced(np.add, x.astype("f8"), offsets, 0, "f8"))
    yield Case("accumulator", "{r} = reduce_segments({x}, {o}, add, accumulator=f64)", x=x, o=o).expect("r", reduced(np.add, x.astype("f8"), offsets, 0, "f8"))
    y = np.arange(3000, dtype="i8") ** 2
    yield Case("of a func", "{r} = reduce_segments(square[3000], {o}, plus)", o=o).expect("r", reduced(np.add, y, offsets, 0, "i8"))
    rows = np.arange(0, 11, dtype="i8") ** 2
    yield Case("offsets of a func", "{r} = reduce_segments({x}, square[11], add)", x=x).expect("r", reduced(np.add, x, rows, 0, "f4"))
    for text in ("reduce", "scan"):
        yield Case(f"{text}: no segment", f"{{r}} = {text}_segments({{x}}, {{o}}, add)", x=x[:0], o=o[:1]).expect("r", np.zeros(0, "f4"))
    yield Case("only empty ones", "{r} = reduce_segments({x}, {o}, mul)", x=x[:0], o=np.zeros(5001, "i4")).expect("r", np.ones(5000, "f4"))


# ---- by key ----

def keys_of(rng, n, kind):
    """Runs of all lengths, with different keys in neighbouring runs. Also one run with all elements, and runs that end at the
    end of a tile or of a warp's part."""
    starts = rng.random(n) < float(rng.choice([0, 0, 0.001, 0.06, 0.5, 1]))
    if rng.random() < 0.7:
        starts[rng.integers(0, n, n // 50)] = True
    if rng.random() < 0.3:
        starts[::32 * int(rng.choice([3, 5, 11, 21, 8 * 3, 8 * 5, 8 * 11, 8 * 21]))] = True
    number = np.cumsum(starts)
    return (number % (2 if kind == "?" else 100)).astype(kind)


def runs_of(keys):
    changes = np.flatnonzero(keys[1:] != keys[:-1]) + 1 if len(keys) else np.zeros(0, "i8")
    return np.concatenate([[0], changes, [len(keys)]]).astype("i8") if len(keys) else np.zeros(1, "i8")


def front(kept, n, dtype):
    start = np.full(max(n, 1), 7).astype(dtype)
    made = start.copy()
    made[:len(kept)] = kept
    return start, made


def by_key_case(call, x, keys, want, label, kind=None, **more):
    offsets = runs_of(keys)
    case = Case(label, call).array("x", x, kind).array("k", keys)
    for name, value in more.items():
        case.array(name, value, kind)
    if kind:
        start = np.zeros(max(len(x), 1), x.dtype)
        made = start.copy()
        made[:len(want)] = want
        case.array("r", start, kind).expect("r", made)
    else:
        start, made = front(want, len(x), want.dtype)
        case.array("r", start).expect("r", made)
    start, made = front(keys[offsets[:-1]], len(x), keys.dtype)
    return case.array("s", start).expect("s", made).expect("n", np.array(len(offsets) - 1, "i8"))


@some_cases(4)
def keys_of_all_types(rng):
    for key in [kind for kind in values.TYPES if kind != "bf16"]:
        for _ in range(2):
            name, kind = random_operator(rng)
            n = int(rng.integers(1, 4000))
            x, keys = operators.numbers_for(rng, name, n, kind), keys_of(rng, n, key)
            want = reduced(operators.NAMED[name], wide(name, x, kind), runs_of(keys), 0, operators.expected_type(name, kind))
            yield by_key_case(f"{{s}}, {{r}}, {{n}} = reduce_by_key({{k}}, {{x}}, {name})", x, keys, want, f"by key {key} {name} {kind} {n}")
            upto = scanned(operators.NAMED[name], wide(name, x, kind), runs_of(keys), None, None, np.zeros(n, want.dtype))
            yield Case(f"scan by key {key} {name} {kind} {n}", f"{{r}} = scan_by_key({{k}}, {{x}}, {name})", x=x, k=keys).expect("r", upto)


@some_cases(5)
def sizes_by_key(rng):
    for n in values.BORDERS + values.LARGE:
        x, keys = rng.integers(-100, 100, n, np.int32), keys_of(rng, n, "u4") if n else np.zeros(0, "u4")
        offsets, sums = runs_of(keys), np.concatenate([[0], np.cumsum(x, dtype="i8")])
        yield by_key_case("{s}, {r}, {n} = reduce_by_key({k}, {x}, add)", x, keys, sums[offsets[1:]] - sums[offsets[:-1]], f"size by key {n}")
        before = sums[:-1] - np.repeat(sums[offsets[:-1]], np.diff(offsets))
        yield Case(f"size of a scan by key {n}", "{r} = scan_by_key({k}, {x}, add, exclusive=true)", x=x, k=keys).expect("r", before)


@some_cases(3)
def structs_by_key(rng):
    for n in (300, 20001):
        x, y, keys = operators.affines(rng, n), operators.tagged(rng, n), keys_of(rng, n, "i2")
        offsets, start = runs_of(keys), operators.affines(rng, 1)
        want = reduced(operators.then, x, offsets, None, x.dtype)
        yield by_key_case("{s}, {r}, {n} = reduce_by_key({k}, {x}, then)", x, keys, want, f"struct by key {n}", "Affine")
        call = "{s}, {r}, {n} = reduce_by_key({k}, {x}, then, initial={f}[0])"
        yield by_key_case(call, x, keys, operators.then(np.repeat(start, len(want)), want), f"struct by key after another {n}", "Affine", f=start)
        call = "{s}, {r}, {n} = reduce_by_key({k}, {x}, later)"
        yield by_key_case(call, y, keys, reduced(operators.later, y, offsets, None, y.dtype), f"struct of 40 bytes by key {n}", "Tagged")
        after = scanned(operators.then, x, offsets, None, operators.NO_CHANGE, x)
        own = Case(f"exclusive scan of a struct by key {n}, from the identity", "{r} = scan_by_key({k}, {x}, then, exclusive=true)")
        yield own.array("x", x, "Affine").array("k", keys).expect("r", after)
        for exclusive in (False, True):
            option = f", initial={{f}}[0]{', exclusive=true' if exclusive else ''}"
            after = scanned(operators.then, x, offsets, start, True if exclusive else None, x)
            case = Case(f"scan of a struct by key {n}{option}", f"{{r}} = scan_by_key({{k}}, {{x}}, then{option})")
            yield case.array("x", x, "Affine").array("f", start, "Affine").array("k", keys).expect("r", after)


@some_cases(3)
def options_by_key(rng):
    x, keys = values.small_numbers(rng, 3000, "f4"), keys_of(rng, 3000, "i4")
    offsets = runs_of(keys)
    yield Case("scan by key in place", "{x} = scan_by_key({k}, {x}, add)", x=x, k=keys).expect("x", scanned(np.add, x, offsets, None, None, x))
    near = np.cumsum(rng.random(3000) * 0.02)
    runs = np.concatenate([[0], np.flatnonzero(~(np.abs(near[:-1] - near[1:]) < 0.01)) + 1, [3000]])
    start, made = front(reduced(np.add, x, runs, 0, "f4"), 3000, "f4")
    case = Case("by a func", "{s}, {r}, {n} = reduce_by_key({k}, {x}, add, equal=near)", x=x, k=near, r=start).expect("r", made).expect("n", np.array(len(runs) - 1, "i8"))
    start, made = front(near[runs[:-1]], 3000, "f8")
    yield case.array("s", start).expect("s", made)
    tens = np.arange(3000) // 10
    sums = (np.arange(3000, dtype="i8") ** 2).reshape(300, 10).sum(axis=1)
    start, made = front(sums, 3000, "i8")
    yield Case("keys and values of funcs", "{s}, {r}, {n} = reduce_by_key(tenth[3000], square[3000], add)", r=start, s=np.zeros(3000, "i8")).expect("r", made).expect(
        "s", np.where(np.arange(3000) < 300, np.arange(3000), 0)).expect("n", np.array(300, "i8"))
    yield Case("scan of funcs", "{r} = scan_by_key(tenth[3000], square[3000], max)").expect("r", np.arange(3000, dtype="i8") ** 2 + 0 * tens)


@large_case
def large(rng, n):
    x = rng.integers(-100, 100, n, np.int32)
    average = int(rng.choice([2, 30, 1000, 100000, n]))
    offsets = np.concatenate([[0], np.sort(rng.integers(0, n + 1, n // average)), [n]])
    if rng.random() < 0.5:
        return Case(f"large, {average} on average", "{r} = reduce_segments({x}, {o}, add)", x=x, o=typed(rng, offsets)).expect("r", sums_between(x, offsets))
    sums = np.concatenate([[0], np.cumsum(x, dtype="i8")])
    want = sums[1:] - np.repeat(sums[offsets[:-1]], np.diff(offsets))
    return Case(f"large scan, {average} on average", "{r} = scan_segments({x}, {o}, add)", x=x, o=typed(rng, offsets)).expect("r", want)

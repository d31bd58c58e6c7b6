"""Daily calls on small arrays on the CPU: kjit.numpy beside NumPy, in alternation.

    python3 test/bench/small_arrays.py                               # 100 and 1000 elements of float64
    python3 test/bench/small_arrays.py --only "sum;np.sqrt" --sizes 1000 --types float32,int64

--only selects the calls whose text contains one of the words. A cell has the microseconds of a call of kjit, and its ratio to NumPy's time.
Each time is the least of many: kjit and NumPy take turns of some calls, so that a load on the machine affects both. The result of each call
is compared with NumPy's first. The last lines count the ratios above 3 and name the worst one."""

import argparse
import os
import time

os.environ["KJIT_DEVICE"] = "cpu"

import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
from kjit import _kjit  # noqa: E402
from kjit.numpy import _fusing  # noqa: E402
from report import print_table, processor_name, say  # noqa: E402

# Calls by subject. x, y: vectors; z: a vector for results; m: a square matrix; mask, places: bools and indices for x; n: the number of
# elements; xp: kjit.numpy or NumPy. np is NumPy in both cases.
CALLS = {
    "creation": """xp.empty(n); xp.zeros(n); xp.ones(n); xp.full(n, 2.5); xp.zeros((4, n)); xp.zeros(n, dtype=np.float32); xp.arange(n);
        xp.arange(0, n, 2); xp.linspace(0, 1, n); xp.empty_like(x); xp.zeros_like(x); xp.ones_like(x); xp.eye(10)""",
    "conversion": """xp.asarray(x); xp.asarray([1.0, 2.0, 3.0]); x.copy(); xp.array(x); x.astype(np.float32); x.astype(x.dtype); x.tolist();
        np.asarray(x)""",
    "views": """x[10:90]; x[::2]; x[-1]; x[3]; m[2]; m[1:, 2]; m.T; x.reshape(-1, 10); x.reshape((10, -1)); xp.reshape(x, (-1, 10)); m.ravel();
        m.flatten(); x[None, :]; xp.expand_dims(x, 0); xp.squeeze(x); xp.transpose(m); xp.flip(x)""",
    "indexing": """x[mask]; x[places]; m[places % 10]; xp.take(x, places); z[10:90] = 1.5; z[10:90] = x[10:90]; z[...] = x; z[3] = 2.5;
        z[mask] = 0.5; z[places] = 1.5; z.fill(0.5)""",
    "operators": "x + y; x * 2.5; -x; x < y; (x + y) * x - y * 2 + 1; z += x * 0; x ** 2; x @ y",
    "functions": """xp.sqrt(x); xp.exp(x); xp.add(x, y); xp.add(x, y, out=z); xp.maximum(x, y); xp.where(mask, x, y); xp.clip(x, -1, 1);
        xp.abs(x); xp.isnan(x)""",
    "protocols": """np.sqrt(x); np.add(x, y); np.add(x, y, out=z); np.multiply(x, 2.5); np.sum(x); np.mean(x); np.concatenate((x, y));
        np.where(mask, x, y); np.dot(x, y)""",
    "reductions": """xp.sum(x); x.sum(); x.mean(); xp.mean(x); x.max(); xp.min(x); xp.prod(x); xp.std(x); xp.var(x); xp.any(mask); xp.all(mask);
        xp.argmax(x); x.argmin(); xp.cumsum(x); xp.sum(m, axis=0); xp.sum(m, axis=1); xp.max(m, axis=0); xp.sum(x * y); xp.dot(x, y)""",
    "order": "xp.sort(x); xp.argsort(x); xp.searchsorted(s, x); xp.unique(places); xp.nonzero(mask)",
    "joining": "xp.concatenate((x, y)); xp.concat([x, y, x]); xp.stack((x, y)); xp.hstack((x, y)); xp.vstack((x, y)); xp.split(x, 2)",
    "scalars": "x[3].item(); float(x[3]); int(places[3]); bool(mask[3]); x.item(3); len(x); x.shape; x.dtype; x.ndim; x.size; list(x); float(x.sum())",
}


def calls():
    """Returns the text of each call with its subject."""
    return [(text.strip(), subject) for subject, texts in CALLS.items() for text in texts.split(";")]


def function_of(text, names):
    """Returns a function that runs an expression, or an assignment, with the given variables."""
    is_statement = " = " in text or " += " in text
    code = f"def call():\n    global z\n    {'' if is_statement else 'return '}{text}"
    space = dict(names)
    exec(code, space)
    return space["call"]


def values_of(x):
    """Returns a result as one NumPy array."""
    if isinstance(x, (list, tuple)):
        return np.concatenate([np.ravel(values_of(item)) for item in x]) if x else np.zeros(0)
    return np.asarray(x.to_host() if hasattr(x, "to_host") else x)


def seconds_of(call, repetitions):
    start = time.perf_counter()
    for _ in range(repetitions):
        call()
    return (time.perf_counter() - start) / repetitions


def operands(size, dtype):
    generator = np.random.default_rng(size)
    x = (generator.random(size) * 4 - 2).astype(dtype)
    side = int(size**0.5)
    made = {"x": x, "y": x[::-1].copy(), "z": np.zeros_like(x), "s": np.sort(x), "m": x[: side * side].reshape(side, side).copy()}
    return made | {"mask": x > 0, "places": generator.integers(0, size, size // 4)}


def are_alike(text, kjits, numpys, own, given, bound):
    """Returns whether two calls have the same results, and leave the same elements in z."""
    got, expected = values_of(kjits()), values_of(numpys())
    if got.dtype == object or "empty" in text:
        return got.shape == expected.shape
    pairs = (got, expected), (own["z"].to_host(), given["z"])
    return all(a.shape == b.shape and np.allclose(a, b, rtol=bound, atol=bound, equal_nan=True) for a, b in pairs)


def compare(text, size, dtype, rounds):
    """Returns the minimum seconds of a call for (kjit, NumPy)."""
    given = operands(size, dtype)
    own = {name: knp.asarray(each, copy=True) for name, each in given.items()}
    kjits, numpys = function_of(text, own | {"xp": knp, "np": np, "n": size}), function_of(text, given | {"xp": np, "np": np, "n": size})
    if not hasattr(np, "concat"):  # NumPy 1
        numpys = function_of(text.replace("xp.concat(", "xp.concatenate("), given | {"xp": np, "np": np, "n": size})
    compute, is_array = _kjit.compute, type(own["x"])

    def computed():
        made = kjits()
        if type(made) is is_array:
            compute(made)
        return made

    with np.errstate(all="ignore"):
        assert are_alike(text, kjits, numpys, own, given, 1e-3 if dtype == "float32" else 1e-9), (text, size, dtype)
        for call in (computed, computed, computed, numpys):  # the first calls start compilations on another thread
            seconds_of(call, 50)
            _fusing.wait()
        repetitions = max(10, 20000 // size)
        times = [(seconds_of(computed, repetitions), seconds_of(numpys, repetitions)) for _ in range(rounds)]
    return min(a for a, _ in times), min(b for _, b in times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=[""], type=lambda text: text.split(";"), help="words separated by semicolons")
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--types", default="float64")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    sizes, types = [int(size) for size in options.sizes.split(",")], options.types.split(",")
    rows, ratios = [], []
    for text, subject in calls():
        if not any(word in text for word in options.only):
            continue
        cells = [subject, f"`{text}`"]
        for dtype in types:
            for size in sizes:
                kjits, numpys = compare(text, size, dtype, options.rounds)
                cells.append(f"{kjits * 1e6:.2f} ({kjits / numpys:.1f})")
                ratios.append((kjits / numpys, f"{text}, {size} elements of {dtype}"))
        rows.append(cells)
        say(" | ".join(cells))
    columns = [f"{dtype} {size}" for dtype in types for size in sizes]
    head = f"{processor_name()}, {os.cpu_count()} cores, NumPy {np.__version__}"
    print_table("Microseconds of a call of kjit.numpy (ratio to NumPy)", head, ["subject", "call", *columns], rows)
    print(f"\n{sum(ratio > 3 for ratio, _ in ratios)} of {len(ratios)} ratios are above 3; the worst is {max(ratios)[0]:.1f} ({max(ratios)[1]})")


if __name__ == "__main__":
    main()

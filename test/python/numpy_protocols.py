# RUN: %kjit-python %s
"""NumPy's ufuncs and functions called with arrays of kjit, against NumPy with its own arrays, on random data.

Each run tries every ufunc, every method of ufuncs and every function of the list with types that chance picks; KJIT_TEST_ALL=1 tries all
types."""
import os
import random
import warnings

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

warnings.simplefilter("ignore")
np.seterr(all="ignore")
seed = seeds.seed
choice, generator = random.Random(seed), np.random.default_rng(seed)
EVERY = bool(os.environ.get("KJIT_TEST_ALL"))
TYPES = "?bBhHiIqQefdFD"
# Relative errors by the size of a float in bytes.
BOUNDS = {2: 4e-3, 4: 2e-5, 8: 1e-11}


def same(got, expected, what, count=1):
    """Requires equal types, shapes and integers. Floats may differ within a bound that grows with the number of
    combined elements."""
    if isinstance(expected, (tuple, list)):
        assert type(got) is type(expected) and len(got) == len(expected), (seed, what, got, expected)
        for one, other in zip(got, expected):
            same(one, other, what, count)
        return
    if isinstance(got, kjit.Array):
        got = got.to_host()
    elif not isinstance(expected, (np.ndarray, np.generic, float, complex)):
        assert type(got) is type(expected) and got == expected, (seed, what, got, expected)
        return
    expected, got = np.asarray(expected), np.asarray(got)
    assert got.shape == expected.shape, (seed, what, got.shape, expected.shape)
    assert got.dtype == expected.dtype, (seed, what, got.dtype, expected.dtype)
    if got.dtype.kind in "biuSU":
        assert (got == expected).all(), (seed, what, got, expected)
        return
    bound = BOUNDS[got.dtype.itemsize // (1 + (got.dtype.kind == "c"))] * count
    for one, other in ((got.real, expected.real), (got.imag, expected.imag)) if got.dtype.kind == "c" else ((got, expected),):
        scale = np.abs(expected).astype("D" if got.dtype.kind == "c" else "d").real
        near = np.abs(one.astype("d") - other.astype("d")) <= bound * (1 + np.abs(scale))
        assert (near | (one == other) | np.isnan(one) & np.isnan(other)).all(), (seed, what, got, expected)


def numbers(shape, code, low=-9, high=10):
    dtype = np.dtype(code)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "iu":
        return generator.integers(0 if dtype.kind == "u" else low, high, shape).astype(dtype)
    made = generator.random(shape) * (high - low) / 2 + low / 2
    return (made + 1j * (generator.random(shape) * 4 - 2)).astype(dtype) if dtype.kind == "c" else made.astype(dtype)


def outcome(call):
    """Returns the result of a call, or the class of its error."""
    try:
        return call()
    except (TypeError, ValueError, IndexError) as error:
        return error


FAILURES = []


def compare(call, arguments, what, count=1):
    """Makes the same call with NumPy arrays and with kjit arrays. If NumPy raises an error, kjit must raise one as
    well."""
    expected = outcome(lambda: call(*arguments))
    got = outcome(lambda: call(*(kjit.array(x) if isinstance(x, np.ndarray) else x for x in arguments)))
    if isinstance(expected, Exception) or isinstance(got, Exception):
        kinds = TypeError, ValueError, IndexError
        both = isinstance(expected, Exception) and isinstance(got, Exception)
        assert both and any(isinstance(expected, k) and isinstance(got, k) for k in kinds), (seed, what, got, expected)
        return False
    assert not isinstance(expected, np.ndarray) or isinstance(got, kjit.Array), (seed, what, type(got))
    same(got, expected, what, count)
    return True


def picked(of, count):
    return of if EVERY else choice.sample(list(of), min(count, len(of)))


# ---- every ufunc ----

OLD = int(np.__version__.split(".")[0]) < 2  # NumPy 2 changed the sign of complex numbers, and kjit follows NumPy 2

UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None and f.__name__ != "isnat"}


def operands_of(ufunc, codes, shapes=((3, 4), (4,))):
    found = [numbers(shape, code) for shape, code in zip(shapes, codes)]
    name = ufunc.__name__
    if name in ("power", "float_power") and len(found) == 2:
        if found[0].dtype.kind not in "b":
            # NumPy has its own results for powers of 0 and complex exponents
            found[0] = (np.abs(found[0]) + 1).astype(codes[0])
        if "c" in (found[0].dtype.kind, found[1].dtype.kind):
            found[0] = found[0] * 0 + np.ones((), codes[0])
        if found[1].dtype.kind in "iu":
            found[1] = (np.abs(found[1]) % 4).astype(codes[1])
    if name in ("left_shift", "right_shift"):
        found[1] = np.abs(found[1].astype("i8") % 7).astype(codes[1])
    if name == "reciprocal" and found[0].dtype.kind in "iu":
        found[0] = found[0] * 0 + 1
    return found


for name, ufunc in sorted(UFUNCS.items()):
    pairs = [(code, code) for code in TYPES] + [(a, b) for a in TYPES for b in TYPES if a != b] * (ufunc.nin == 2)
    pairs = pairs if EVERY else choice.sample(pairs[:14], 2) + choice.sample(pairs, 2)
    for codes in pairs:
        if name == "sign" and codes[0] in "FD" and OLD:
            continue
        compare(ufunc, operands_of(ufunc, codes[: ufunc.nin]), (name, codes))

# ---- the methods of ufuncs ----

# NumPy 1.24's reduce of arctan2 returns arctan2(x[0], x[-1]) on processors with AVX-512.
WRONG_FOLDS = ["arctan2"]
BINARY = [f for f in UFUNCS.values() if f.nin == 2 and f.nout == 1 and f.__name__ not in ("ldexp", "power", "float_power", *WRONG_FOLDS)]


def array(shape, code, name):
    """Operands of folds: shifts and divisions by small numbers, products that do not grow."""
    made = numbers(shape, code, -3, 4)
    if name in ("left_shift", "right_shift"):
        made = np.abs(made.astype("i8") % 3).astype(code)
    if name in ("divide", "floor_divide", "remainder", "fmod"):
        made = np.where(made == 0, np.ones((), code), made)
    return made


def folds_of(ufunc, code):
    """Yields the calls of a ufunc's methods, each with the arrays that it takes."""
    name = ufunc.__name__
    x = array((3, 4, 5), code, name)
    mask, places = generator.random((3, 4, 5)) < 0.6, generator.integers(0, 4, 5)
    axis = choice.choice([0, 1, 2, -1])
    yield "reduce", lambda a: ufunc.reduce(a, axis=axis), (x,)
    yield "reduce keepdims", lambda a: ufunc.reduce(a, axis, keepdims=True), (x,)
    yield "reduce all", lambda a: ufunc.reduce(a, axis=None), (x,)
    yield "reduce axes", lambda a: ufunc.reduce(a, axis=(0, 2)), (x,)
    yield "reduce where", lambda a, m: ufunc.reduce(a, axis=axis, where=m), (x, mask)
    yield "reduce initial", lambda a, m: ufunc.reduce(a, axis=axis, initial=1, where=m), (x, mask)
    yield "reduce nothing", lambda a: ufunc.reduce(a, axis=1), (x[:, :0],)
    yield "accumulate", lambda a: ufunc.accumulate(a, axis=axis), (x,)
    yield "reduceat", lambda a: ufunc.reduceat(a, places, axis=1), (x,)
    yield "outer", lambda a, b: ufunc.outer(a, b), (x[0, 0], x[:2, 0])


for ufunc in BINARY:
    for code in TYPES if EVERY else choice.sample(TYPES, 1):
        for what, call, arguments in folds_of(ufunc, code) if EVERY else choice.sample(list(folds_of(ufunc, code)), 3):
            compare(call, arguments, (ufunc.__name__, what, code), 60)

# ---- at ----


def updated(ufunc, x, key, *values):
    """Calls ufunc.at on a copy of the array, because the call changes the array."""
    own = x.copy()
    assert ufunc.at(own, key, *values) is None
    return own


for name in picked(["add", "subtract", "multiply", "maximum", "minimum", "bitwise_xor", "negative", "absolute", "logical_not"], 4):
    ufunc, code = getattr(np, name), choice.choice("bHiqfd") if name != "bitwise_xor" else choice.choice("bHiq")
    if name == "logical_not":
        code = "?"
    x = array((6, 5), code, name)
    keys = [
        (generator.integers(-6, 6, 20), 20), ((generator.integers(0, 6, 9), generator.integers(-5, 5, 9)), 9),
        (slice(1, 5, 2), 5), ((slice(None), generator.integers(0, 5, 7)), 7), (x > 0, None), (3, 5),
    ]
    for key, count in picked(keys, 3):
        values = [numbers((), code)[()] if count is None else numbers((count,), code)] * (ufunc.nin - 1)
        if isinstance(key, np.ndarray) and key.dtype != bool and values:
            values = [numbers((20, 1), code)]
        compare(lambda a, *v: updated(ufunc, a, key, *v), (x, *values), (name, "at", code, key))
x = array((6,), "d", "add")
compare(lambda a, b: updated(np.add, a, [0, 0, 5], b), (x, numbers(3, "f")), "at with values of another type")
compare(lambda a: updated(np.add, a, [0, 0, 5], 2), (x,), "at with a number")
compare(lambda a: updated(np.add, a[::2], [0, 0, 2], 2), (x,), "at of a view")
compare(lambda a: updated(np.add, a, [0, 9], 2), (x,), "at out of bounds")

# ---- options of calls ----

x, y, mask = numbers((3, 4), "f"), numbers((4,), "i"), generator.random((3, 4)) < 0.5


def into(ufunc, code, **options):
    """Makes a call with out=. The output array belongs to the same library as the first operand."""

    def call(*operands):
        out = np.zeros_like(operands[0], dtype=code)
        out[...] = 7
        made = ufunc(*operands, out=out, **options)
        assert made is out, (seed, ufunc)
        return out

    return call


compare(into(np.add, "d"), (x, y), "out")
compare(into(np.add, "f"), (x, y), "out of a smaller type")
compare(into(np.add, "i"), (x, y), "an out that the result is not converted to")
compare(into(np.add, "i", casting="unsafe"), (x, y), "an out that the result is cut for")
compare(into(np.multiply, "d", dtype="d"), (x, y), "dtype")
compare(lambda a, b: np.multiply(a, b, dtype="f", casting="same_kind"), (x, y.astype("d")), "dtype of a smaller type")
compare(lambda a, b: np.add(a, b, casting="no"), (x, y), "casting no")
compare(lambda a, b: np.add(a, b, casting="equiv"), (x, x[0]), "casting equiv")
compare(lambda a, b: np.add(a, b, signature="dd->d"), (x, y), "signature")
compare(lambda a, b: np.add(a, b, signature="ff->f"), (x, y), "a signature that the operands do not fit")
compare(lambda a, m: into(np.sqrt, "f", where=m)(a), (np.abs(x), mask), "where")
compare(lambda a, m: into(np.add, "d", where=m)(a, 1), (x, mask[0]), "where that broadcasts")
compare(lambda a: np.divmod(a, 3), (x,), "two results")
compare(lambda a: np.modf(a), (x,), "two results of one operand")
compare(lambda a: np.frexp(a), (x,), "results of two types")
compare(lambda a: np.add(a, [1, 2, 3, 4]), (x,), "a list")
compare(lambda a, b: np.add(a, b), (x, numbers(3, "f")), "shapes that do not broadcast")
compare(lambda a: np.power(a, -1), (y,), "a negative exponent")
for call in (lambda a: np.add(a, 1), lambda a: np.add(2.5, a), lambda a: np.multiply(a, True)):
    for code in picked("fdiqFD", 3):
        compare(call, (numbers(5, code),), ("a number", code))
host = numbers((3, 4), "d")
own = kjit.array(host)
other = numbers((3, 4), "f")
same(np.add(other, own), other + host, "an array of NumPy first")
same(other * own, other * host, "an operator of NumPy")
assert isinstance(other * own, kjit.Array)
made = other.copy()
made += own
same(made, other + host.astype("f"), "an update of an array of NumPy")
assert np.add(own, 1, out=made) is made
same(made, (host + 1).astype("f"), "out= of NumPy")
base = kjit.array(np.arange(12.0))
np.add(base[1:], base[:-1], out=base[1:])
expected = np.arange(12.0)
expected[1:] = expected[1:] + expected[:-1].copy()
same(base, expected, "operands that overlap out=")


class Foreign:
    """An object of another library that implements the protocol."""

    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return "foreign", ufunc.__name__, method

    def __array_function__(self, func, types, args, kwargs):
        return "foreign", func.__name__


assert np.add(own, Foreign()) == ("foreign", "add", "__call__")
assert np.concatenate([own, Foreign()]) == ("foreign", "concatenate")

# ---- functions ----

A, B, V, W = "a", "b", "v", "w"  # (3, 4), (3, 4), (7,), (7,)
CALLS = """
np.sum(a) np.sum(a,axis=0) np.sum(a,1,keepdims=True) np.sum(a,dtype=np.float64) np.cumsum(a,dtype=np.complex128) np.ones_like(a,dtype=np.float32) np.prod(v/4) np.max(a) np.min(a,axis=1) np.amax(a,0)
np.any(a>3) np.all(a>-9,axis=0) np.mean(a) np.mean(a,axis=0) np.mean(a,dtype=np.complex128) np.var(a) np.var(a,axis=1,ddof=1) np.std(a,0,keepdims=True)
np.average(a) np.average(a,weights=np.abs(b)+1) np.average(v,axis=0,weights=np.abs(w)+1) np.cumsum(a) np.cumsum(a,axis=1)
np.cumprod(v/4) np.ptp(a) np.ptp(a,axis=0) np.count_nonzero(a>0) np.count_nonzero(a>0,axis=1) np.argmax(a) np.argmin(a,axis=0)
np.nansum(a) np.nanprod(v/4) np.nanmean(a,axis=0) np.nanmax(a) np.nanstd(a) np.median(a) np.median(a,axis=0) np.median(v,keepdims=True)
np.percentile(a,30) np.quantile(a,0.2,axis=0) np.reshape(a,(2,6)) np.reshape(a,-1) np.ravel(a) np.transpose(a) np.transpose(a,(1,0))
np.moveaxis(a,0,1) np.swapaxes(a,0,1) np.expand_dims(a,1) np.squeeze(a[:1]) np.squeeze(a[:1],axis=0) np.broadcast_to(v,(2,7))
np.broadcast_arrays(a,a[0]) np.concatenate((a,b)) np.concatenate([a,b],axis=1) np.concatenate((a,b),axis=None) np.stack([a,b])
np.stack([v,w],axis=1) np.hstack([a,b]) np.hstack([v,w]) np.vstack([v,w]) np.dstack([a,b]) np.column_stack([v,w]) np.atleast_1d(v)
np.atleast_2d(v) np.atleast_3d(a) np.split(a,2,axis=1) np.split(v,[2,5]) np.array_split(v,3) np.hsplit(a,2) np.vsplit(a,3) np.tile(v,2)
np.tile(a,(2,1)) np.repeat(v,3) np.repeat(a,2,axis=1) np.roll(v,2) np.roll(a,1,axis=0) np.flip(a) np.flip(a,0) np.flipud(a)
np.fliplr(a) np.rot90(a) np.pad(v,2) np.pad(a,((1,0),(2,1)),constant_values=3) np.pad(v,2,mode='edge') np.sort(a) np.sort(a,axis=0)
np.sort(a,axis=None) np.argsort(v,kind='stable') np.argsort(a,axis=0,kind='stable') np.searchsorted(np.sort(v),w) np.searchsorted(np.sort(v),2.5,side='right')
np.unique(v) np.unique(v,return_counts=True) np.unique(v,return_index=True) np.nonzero(a>0) np.flatnonzero(a>0) np.argwhere(a>0)
np.where(a>0) np.where(a>0,a,b) np.where(a>0,a,0) np.where(a,1.5,b) np.take(v,[1,-1,3]) np.take(a,[[0,1],[1,0]],axis=1)
np.take_along_axis(a,np.argsort(a,axis=1,kind='stable'),axis=1) np.compress([True,False,True],a,axis=0) np.clip(a,-2,2) np.clip(a,None,b)
np.round(a,1) np.around(a) np.real(a) np.imag(a) np.angle(a) np.isclose(a,b) np.isclose(a,a) np.allclose(a,a) np.allclose(a,b)
np.array_equal(a,a) np.array_equal(a,b) np.diff(v) np.diff(a,axis=0) np.diff(v,2) np.dot(a,np.transpose(b)) np.dot(v,w) np.dot(a,2)
np.matmul(a,np.transpose(b)) np.tensordot(a,b,axes=2) np.tensordot(a,b,axes=((0,),(0,))) np.tensordot(a,b,([0,1],[0,1])) np.inner(v,w)
np.inner(a,b) np.outer(v,w) np.vdot(a,b) np.einsum('ij,kj->ik',a,b) np.einsum('ij->j',a) np.kron(v[:2],w[:3]) np.cross(v[:3],w[:3])
np.trace(a) np.trace(a,1) np.diagonal(a) np.diagonal(a,-1) np.diag(v) np.diag(v,-2) np.diag(a) np.tril(a) np.triu(a,1)
np.zeros_like(a) np.ones_like(a,dtype='i') np.full_like(a,3) np.empty_like(a)[:0] np.copy(a) np.meshgrid(v,w) np.meshgrid(v,w,indexing='ij')
np.shape(a) np.ndim(a) np.size(a) np.size(a,1) np.interp(v,np.sort(w),w) np.histogram(a,bins=4) np.bincount(np.abs(v).astype(np.int64))
np.isin(v,[1,2]) np.nan_to_num(a) np.digitize(v,np.sort(w)) np.gradient(v) np.convolve(v,w) np.cov(a) np.apply_along_axis(np.sum,0,a)
np.linalg.norm(a) np.fft.fft(v) np.linalg.inv(a[:3,:3]*1.0+20*np.eye(3)) np.select([a>1,a<0],[a,b]) np.trapz(v) np.iscomplexobj(a)
np.result_type(a,b) np.can_cast(a.dtype,'d') np.may_share_memory(a,a) np.argpartition(v,2)*0 np.lexsort((v,w)) np.union1d(v,w)
np.intersect1d(v,w) np.setdiff1d(v,w) np.logical_and.reduce(a,axis=0) np.add.at(v.copy(),[1],2) np.putmask(a.copy(),a>0,0) np.sum([a,b])
np.concatenate([a,b.astype(np.float32)]) np.dot(a,b[:,:4].T.astype(np.float32)) np.mean(a>0) np.sum(a>0) np.cumsum(a>0,axis=0) np.fix(a)
""".split()
CALLS = [call for call in CALLS if hasattr(np, call.split("(")[0][3:].split(".")[0])]
compiled = {call: eval("lambda a, b, v, w: " + call, {"np": np}) for call in CALLS}  # noqa: S307
for call in CALLS:
    for code in "difD" if EVERY else choice.choice("difD"):
        if code == "D" and ("astype" in call or "fix" in call or "percentile" in call or "quantile" in call or "linalg.norm" in call):
            continue
        arguments = [numbers(shape, code) for shape in ((3, 4), (3, 4), (7,), (7,))]
        expected = outcome(lambda: compiled[call](*arguments))
        if not isinstance(expected, Exception):
            compare(compiled[call], arguments, (call, code), 20)

# RUN: %kjit-python %s
"""Short programs as users of NumPy write them, each run with numpy and with kjit.numpy, whose results and errors have to be the same.

In a program `xp` is the namespace, `np` is NumPy, and `a` ... are arrays of `xp` with fresh random numbers. The last statement is an
expression, whose value is compared. beside_numpy.py 3 17 runs the programs with these numbers and shows what raises an error."""
import array
import collections
import copy
import math
import operator
import os
import pickle
import sys
import tempfile
import traceback
import warnings
import weakref

os.environ["KJIT_DEVICE"] = "cpu"
import kjit  # noqa: E402
import kjit.numpy as knp  # noqa: E402
import numpy as np  # noqa: E402
import seeds  # noqa: E402

warnings.simplefilter("ignore")
np.seterr(all="ignore")
seed = seeds.seed
generator = np.random.default_rng(seed)
# a: floats, m: a symmetric matrix, i: integers, j: small unsigned integers, b: bools, c: complex numbers, v: one dimension, n: many integers.
ARRAYS = {
    "a": generator.normal(size=(3, 4)), "m": np.eye(3) * 4 + np.ones((3, 3)) * generator.random(), "i": generator.integers(-9, 10, 6),
    "j": generator.integers(0, 9, 6).astype("u1"), "b": generator.random(6) < 0.5, "f": generator.random(6).astype("f4"),
    "c": generator.normal(size=4) + 1j * generator.normal(size=4), "v": generator.random(5), "n": np.arange(40000) * 7919,
}  # fmt: skip

PROGRAMS = r"""
# types
i + v[0]; i * f; i + j; j + f; b + i; b * v[0]; i / 2; i // 2; f * 2.5; f * np.float64(2.5); np.float64(2.5) * f
f + np.float32(1); i + np.int8(3); np.int16(300) + j; b + b; i.astype("f4"); i.astype("d"); i.astype("<f8"); v.astype("int"); v.astype(int)
v.dtype == "float64"; v.dtype == "f8"; f.dtype == float; i.dtype == int; i.dtype == "int64"; v.dtype.char; v.dtype.str; v.dtype.name; str(v.dtype); f"{f.dtype} {b.dtype}"; "int" in str(i.dtype)
np.issubdtype(v.dtype, np.floating); xp.issubdtype(i.dtype, xp.integer); xp.result_type(i, f); xp.can_cast(i.dtype, "f8")
i += f; j += 300; j += -1; f += i.sum()
i ** -1; i ** 2; 2 ** j; xp.power(i, -1); i ** (i - 20); i ** 2.0; i ** 0.5
# bools in operations on integers
b ** b; b // (b | ~b); b % True; True % (b | True); b << b; b >> True; xp.left_shift(b, b); b - True; True - b; b - b; b ** True; True ** b; divmod(b, b | True); xp.square(b); xp.fmod(b, b | True); xp.gcd(b, b); xp.lcm(b, True); xp.conj(b); xp.reciprocal(b | True); b // 2; b **= b; b
# lists and other operands
v + [1, 2, 3, 4, 5]; [1, 2, 3, 4, 5] * v; (1, 2, 3, 4, 5) - v; v == [1, 2, 3, 4, 5]; v + [1, 2]; v @ [1, 2, 3, 4, 5]; [0] * i[:1]
v += [1, 1, 1, 1, 1]; v; v == None; v != None; v == "x"; v + None; v + "x"; divmod(i, 4); divmod(7, j + 1); abs(c)
xp.add(v, [1, 2, 3, 4, 5]); xp.sum([1, 2, 3]); xp.mean([[1, 2], [3, 4]], axis=0); xp.max((1, 5, 2)); xp.concatenate([[1, 2], [3]])
# creation
xp.zeros((2, 3), "f4"); xp.zeros(3, dtype="i4"); xp.ones(3, int); xp.full(3, 7, "f4"); xp.full(3, [1, 2, 3]); xp.arange(5, dtype="f4")
xp.eye(3, 4, 1); xp.identity(3); xp.diag([1, 2, 3]); xp.tri(3); xp.logspace(0, 2, 3); xp.geomspace(1, 8, 4); xp.vander(v)
xp.linspace(0, 1, 5, False); xp.linspace(0, 1); xp.linspace(0, 1, 5, retstep=True); xp.linspace(v, 2 * v, 4); xp.linspace([0, 1], 2, 4, axis=1)
xp.array([1, 2], ndmin=2); xp.array(v, "f4"); xp.zeros_like(a, shape=2); xp.ones_like([1, 2]); xp.asarray([1, 2], "f4"); xp.indices((2, 2))
xp.zeros((2, 3), order="F").strides; xp.asarray(a, order="F").strides; xp.asfortranarray(a).strides; xp.mgrid[0:2, 0:3]; xp.array([v, v]); xp.array([v[0], 5])
# methods
a.sum(0, "f4"); a.sum(where=a > 0); a.mean(where=a > -9); a.max(where=a > 0, initial=0); a.std(0, ddof=1); a.var(ddof=1); c.max(); c.min()
a.sum(axis=(0, 1), keepdims=True); a.argsort(axis=None); a.argsort(kind="stable"); a.sort(kind="stable"); a; xp.sort(v).searchsorted([0.5, 0.1])
a.clip(-0.5, 0.5); a.clip(min=0); a.round(1); a.dot(a.T); m.trace(); a.diagonal(); a.compress([True, False, True], axis=0); i.put([0, 1], 7); i
v.partition(2); v[2]; a.repeat(2, 1); a.reshape(4, 3, order="F"); a.ravel("F"); a.flatten("F"); a.T.ravel("A"); a.T.reshape(2, 6)
list(a.flat)[3] == a[0, 3]; a.flat[5]; a.T.flat[5] = 7; a; a.flat = [1, 2]; a; a.item(5); a.item(1, 2); a.tobytes() == a.T.tobytes("F")
a.copy("F").strides; a.T.copy("K").strides; a.astype("f4", "C", "same_kind"); a.astype("i4", casting="safe"); a.T.astype("f4").strides
a.flags.c_contiguous; a.T.flags.c_contiguous; a.T.flags["F_CONTIGUOUS"]; a[:, ::2].flags.contiguous; a.setflags(write=False); a.flags.writeable
a.view(np.int64); f.view("f8"); a.view("u1").shape; v.view().shape; a.__array__().shape; list(reversed(v))[0] == v[-1]
a.real; c.real; c.imag; c.conj(); v.conj(); a.imag; c.real = 7; c; c.imag[1:] = v[:3]; c; c.real[::2] += c.imag[::2]; c; v.imag = 1
# functions
xp.sort(a, axis=None); xp.where(a > 0); xp.take(v, [7], mode="clip"); xp.flip(a, 0); xp.reshape(a, (4, 3), order="F"); xp.tensordot(a, a.T, 1)
xp.pad(v, (1, 2), mode="edge"); xp.pad(v, 1, constant_values=7); xp.triu(m, 1); xp.meshgrid(v, i, sparse=True, indexing="ij"); xp.sum(a, where=a > 0)
xp.pad(a, 2, "reflect"); xp.pad(a, 1, "edge"); xp.pad(v, (2,), "wrap"); xp.pad(a, [(0, 1)]); xp.pad(a, ((1, 2), (0, 3))); xp.pad(a, [[1], [2]]); xp.pad(a, [(1, 2, 3)]); xp.pad(v, 2, "mean")
xp.diff(v, prepend=0); xp.diff(a, prepend=0, axis=0); xp.diff(f, append=[1, 2]); xp.diff(i, 2, prepend=7, append=i[:1]); xp.diff(a, append=a[:, :2]); xp.diff(a, append=v)
xp.histogram(i, "auto"); xp.histogram(v, bins="sturges", range=(0, 1)); xp.array_repr(i); xp.array_repr(f); xp.broadcast(a, v[:4]).shape
float(xp.finfo(f.dtype).tiny); float(xp.finfo(v.dtype).smallest_subnormal); int(xp.finfo("f2").precision); float(xp.finfo(xp.float32).resolution) < 2e-6
xp.asarray([1, 2], xp.longlong); np.asarray(i).dtype.char; np.asarray(i.astype("u8") if xp is np else i.astype(xp.uint64)).dtype.char; memoryview(i).format; xp.random.SeedSequence(7).entropy
xp.median(a, axis=0); xp.percentile(a, [30, 60]); xp.average(v, weights=[1, 2, 3, 4, 5]); xp.nanmean(xp.where(v > 0.5, xp.nan, v)); xp.cov(a)
xp.unique(i, return_inverse=True); xp.unique(xp.where(v > 0.5, xp.nan, v), return_counts=True); xp.unique([xp.nan] * 2, equal_nan=False)
xp.bincount(j); xp.digitize(v, [0.2, 0.6]); xp.interp(0.4, [0, 1], v[:2]); xp.gradient(v); xp.convolve(v, [1, 2])
xp.add.reduce(a, axis=1); xp.maximum.accumulate(v); xp.multiply.outer(v, v); xp.add.at(v, [0, 0], 1); v; xp.add(v, 1, v); v; xp.sin(v, dtype="f4")
xp.linalg.norm(v); xp.linalg.norm(a, axis=1); xp.linalg.svd(a, compute_uv=False); xp.linalg.cond(m); xp.linalg.lstsq(m, v[:3], rcond=None)[0]; xp.fft.fft2(a)
xp.einsum(a, [0, 1], a, [2, 1], [0, 2]); xp.einsum(a, [0, ...]); xp.einsum("ij,jk", a, a); xp.einsum("ij,kj,kl->il", a, a, a, optimize=True)
xp.einsum("i,i,ij", v[:3], v[2:], a, optimize="greedy"); xp.histogram(f, 4); xp.histogram(f, [-1, 0, 2]); xp.histogram(i, range(3)); xp.vectorize(lambda x: x + 1)(a)
xp.lib.stride_tricks.sliding_window_view(a, (2, 3)); np.lib.stride_tricks.sliding_window_view(v, 9); xp.lib.stride_tricks.as_strided(v, (3, 3), (8, 8))
xp.linalg.qr(m, mode="r").shape; xp.poly1d([1, 2])(v); xp.polynomial.Polynomial([1, 2])(v); sum(float(x) for x in xp.nditer(v)); v + range(5); range(5) * v
xp.kron(v, v); xp.cross(v[:3], v[2:]); xp.einsum("ij,kj->ik", a, a); xp.allclose(v, v); xp.array_equal(v, v); xp.isclose(v, v + 1e-12); xp.count_nonzero(b)
# indexing and updates
a[a > 0] = 0; a; a[a > 0] += 1; a; a[[0, 0], [1, 1]] += 1; a; i[1:] += i[:-1]; i; i[::-1] += i; i; m += m.T; m; m[[0, 1]] = m[[1, 0]]; m
v[:3] = range(3); v; v[range(2)]; v[[0, 2]] = range(2); v; del a[0]; a; i[[2, 2, 2]] = i[:3]; i; i[i > 0] = i[i > 0][::-1]; i; v[np.int64(1)] = 5; v; i[[1, 0]] += i[[0, 1]]; i; a[1, None, ..., ::-2]; a[2:9, -1:]
sum(v[n] for n in range(len(v))); v[-1]; a[-3]; a[-4]; a[None, None].shape; a[..., 0, :].shape; a[...] is a; xp.argsort(xp.asarray([2.0, 1, 2, 1] * 400), kind="stable")
xp.sort(xp.asarray([3.0, xp.nan, -xp.inf, 1])); xp.argsort(xp.asarray([xp.nan, 1, xp.nan, 0] * 300), kind="stable"); np.sum([v, v], axis=0); a[0.5]; a["x"]; a[9]; a[:, [0, 9]]; a[b]; a[None, :, 1]; a[..., 0]; a[1:, ::-2]; a[np.ix_([0, 2], [1, 3])]; a[i[:2] * 0, i[:2] * 0]; j[0] = 300
i[[2, 2, 2]] = np.arange(3); i; i[[1, -5]] = [7, 8]; i; i[[1, -5, 1]] = (2.5, 3.5, 4.5); i; v[[True] * 5] = np.arange(5); v
a[[0, 0]] = [[1], [2]]; a; a[[0, 0, 1]] = [[1, 2, 3, 4]] * 2 + [[5, 6, 7, 8]]; a; i[[1, 1]] = array.array("i", [7, 8]); i; v[[4, 3, 2, 1, 1]] = row; v; a[[2, 2], 1:] = ((1, 2, 3), (4, 5, 6)); a; a[[0, 0]] = [[1], [2, 3]]; a[[0, 1]] = [["1.5"] * 4, ["2"] * 4]; a
v[::2**62]; v[3::-2**70]; a[1, ::2**63]; a[[0], ::-2**70]; a[:2**62:2**62] = 0; a; a[-2**70::2**62, b[:4]]; v[2**70]; v[::0]; a[[0], ::0]
# elements that only NumPy has: strings, None and dates in NumPy's functions
xp.where(v > 0.5, "high", "low"); np.where(v > 0.5, "high", "low"); np.where(v > 0.5, None, v); xp.where(b[:5], np.array(list("abcde")), "none"); np.where(b[:5], v, "none"); np.broadcast_arrays(v, None)[1]; np.array_equal(v, None); xp.array_equal(v, list("abcde")); np.stack([v, np.array(list("abcde"))]); np.concatenate([v, np.array([None])]); xp.select([v > 0.5], ["high"], "low"); xp.where("x", v, v + 1); xp.add(v, "x"); xp.where(v > 0.5, v); xp.where(v > 0.5, None, v)
np.append(v, None); xp.append(v, "x"); np.isin(v, ["a"]); np.choose(i % 2, ["even", "odd"]); np.array(list("abcde"))[xp.argsort(v)]; xp.stack([v, [None] * 5]); xp.where(v > 0.5, np.datetime64("2020-01-01"), np.datetime64("2021-01-01")); xp.searchsorted(["a", "c"], "b"); xp.unique(["b", "a", "b"]); xp.sort(["b", "a"])
# reductions along no axis, and views of arrays that broadcast
a.sum(axis=()); a.T.max(axis=()); xp.max(a[:, 1::2].T, axis=()); xp.max(a[::-1, ::-1], axis=()); xp.mean(a[:, ::2], axis=()); (a * 2).prod(axis=()); xp.any(a > 0, axis=(), keepdims=True); xp.std(a, axis=()); np.sum(a.T, axis=()); xp.sum(a[:0], axis=()); (a > 0).sum(axis=(), dtype="f4"); xp.min(i[:1], axis=(), out=j[:1].astype(int))
x, y = xp.broadcast_arrays(v, v + 1); x[0] = 7; v; x, y = xp.broadcast_arrays(a, 2); x[0] = 7; a; x, y = np.broadcast_arrays(a, a[0]); x *= 2; a; x = xp.broadcast_arrays(a)[0]; x[1] = 5; a
# einsum without sums is a view
t = xp.einsum("ii->i", m); t[...] = 7; m; t = xp.einsum("ij->ji", a); t *= 2; a; t = xp.einsum("ij", a); t[0] = 5; a; t = xp.einsum("ba", a); t[:, 1] = 5; a; t = np.einsum("ii->i", m); t += 1; m; t = xp.einsum("i...->...i", a); t[1] = 9; a; t = xp.einsum(a, [1, 0]); t[0] = 3; a; t = xp.einsum("ii", m); t += 1; m; t = xp.einsum("ij->i", a); t[0] = 3; a; xp.einsum("ij->ii", a); xp.einsum("ii->i", a); xp.einsum("ij->ji", a, out=a[:, :3].T); xp.einsum("...ii->...i", xp.stack([m, m])); xp.einsum("i...j", a[None]); xp.einsum("...", a)
d = xp.diag(m); m[0, 0] = 9.0; d; xp.diag(m)[0] = 1; xp.diag(a, 1); d = xp.diag(m, -1); m *= 2; d; xp.diag(v)[1] = 3; v
# the last of the values for an index is stored
i[n % 6] = xp.arange(40000); i; a[n % 3, n % 4] = xp.arange(40000.0); a; a[n % 3] = n[:, None]; a; a.T[::-1][n % 4, ::2] = n[:, None] * (1.5, 2); a; a[:, n % 4] = n; a; f[n % 6] = n / 3; f
t = v * 2; t[n % 5] = t[n[::-1] % 5]; t; c[n % 4] = n * 1j; c; b[n % 6] = n % 3 == 0; b; i[n % 6] = n[::-1]; i; m[n % 3, n[:, None][:200] % 3] = n; m; i[n % 6] = n[:2]; i[n % 6 - 6] = 7; i; i[n % 6 + 1] = n; i[n % 6] = i[n % 5]; i
# bounds of random numbers
xp.random.default_rng(1).uniform([1, 5], [2.0, 3]); xp.random.default_rng(1).uniform(v, [[0.0], [2]]).shape; xp.random.default_rng(1).uniform(v + 1, 1); xp.random.default_rng(1).uniform(2, 1); xp.random.default_rng(1).uniform(v, xp.inf); xp.random.default_rng(1).uniform(0, xp.nan); xp.random.default_rng(1).uniform(v, v + 1, (3, 5)).shape; xp.random.default_rng(1).uniform(v[:0], 1)
# elements are copies, rows are views
v[1], v[2] = v[2], v[1]; v; t = v[0]; v[0] = 9.0; t; t = v[0]; t += 5; v; m[0, 1], m[1, 2] = m[1, 2], m[0, 1]; m; t = m[0]; m[0, 0] = 9.0; t; t = m[1, ...]; t *= 2; m
t = v[np.int64(2)]; v[2] = 8.0; t; t = a[1, np.int32(2)]; a *= 0; t; t = [x for x in v]; v *= 0; xp.stack(t); t = v[1, ...]; v[1] = 6.0; t; t = list(a[0]); a += 1; xp.stack(t); t = a[:, 0]; a += 1; t
x, y = i[0], i[1]; i[0] = 77; (x, y); t = c[0]; c *= 2; t; t = b[1]; b[:] = True; t; t = j[2]; j += j; t; x = v[3]; v.sort(); x; x = (v + 1)[2]; y = x * 2; x += 1; y; t = max(v); v[:] = 0; t
for n in range(len(v) - 1): v[n], v[n + 1] = v[n + 1], v[n]
v; t = v[0]; del v; t; t = a[0][1]; a[0] = 0; t; t = a[0, :][1]; a[0] = 0; t; t = a[0][1, ...]; a[0] = 5; t
# results without dimensions are scalars, which operators in place replace
s = a.sum(); t = s; s += 1; (t, s); s = v[0] + v[1]; t = s; s *= 2; t; s = v @ v; t = s; s -= 1; t; s = xp.max(a); t = [s]; s **= 2; t[0]; s = np.add.reduce(v); t = s; s /= 2; t
s = xp.asarray(5.0); t = s; s += 1; t; s = xp.asarray(v.sum()); t = s; s += 1; t; s = v[1, ...]; s += 1; v; s = xp.zeros(()); t = s; s += 2; t; s = i.argmax(); t = s; s += 9; t; s = v.mean(); t = s; s //= 2; t
s = xp.asarray(5.0); t = s[()]; s += 1; t; s = (v * 2).sum(); t = s; s += v[0]; t; s = xp.dot(v, v); t = s; s += 1; t; s = xp.linalg.norm(v); t = s; s += 1; t; s = np.sum(v); t = s; s += 1; t; s = xp.prod(i) > 0; t = s; s |= True; t
s = xp.asarray(5.0)[()]; s[...] = 7; s; v[1].view("int64")[...] = 8; v; v[1].T[...] = 8; v; v[1].real[...] = 8; v; [0] * (i[0] * 0 + 3); (1, 2) * j[0]; j[0] * [1]
s = xp.asarray(v[0], dtype="f4"); t = s; s += 1; t; s = xp.array(v.sum(), "f4"); t = s; s += 1; t; s = xp.zeros(()).astype("f4"); t = s; s += 1; t; s = v[0].astype("f4"); t = s; s += 1; t; s = v[1, ...].astype("c16"); t = s; s += 1; t
s = v.sum(); t = xp.asarray(s); t += 1; s; t = v[1]; u = t[...]; u += 1; t; s = xp.max(a); t = s[...]; t -= 1; (s, t); t = v[1]; u = xp.asarray(t); u[...] = 7; t; t = v[1]; u = t[None]; u[0] = 7; t; s = v.sum(); t = s[None, ...]; t *= 2; (s, t)
# values that NumPy converts for an assignment
v[0] = None; v; v[1:3] = None; v; v[v > 0.5] = None; v; v[[0, 1]] = None; v; c[0] = None; c; f[:2] = [1, None]; f; i[0] = None; v[0] = "1.5"; v; v[0] = "x"; i[1] = "7"; i; v[:2] = ["1", "2"]; v; v.fill(None); v; v.fill("x"); b[0] = None; b
# arrays of integers as arguments, where an integer is accepted, too
xp.split(a, xp.asarray([1, 2])); xp.split(v, np.asarray([1, 3])); xp.array_split(v, xp.asarray([2])); v[:4].reshape(xp.asarray([2, 2])); xp.zeros(np.asarray([2, 3])); xp.hsplit(a, xp.asarray([1])); xp.pad(v, xp.asarray([1, 2])); xp.array_split(v, xp.asarray(2)); a.transpose(np.asarray([1, 0]))
# orders of arrays
xp.asarray(a.T, order="C").strides; xp.asarray(a.T, None, "C").flags.c_contiguous; xp.asarray(a.T, order="K").strides; xp.ascontiguousarray(v) is v; xp.ascontiguousarray(a.T).strides; xp.asanyarray(a) is a; xp.asfortranarray(a.T).strides; xp.ascontiguousarray(a[:, ::2]).strides; xp.ascontiguousarray(3.0); xp.array(a.T, order="C").strides; xp.asarray(a, order="x")
# errors
xp.sum(v, out=xp.zeros(3)); np.sum(v, out=xp.zeros(3)); a.max(0, out=xp.zeros(4)); a.mean(0, out=xp.zeros((1, 4))); xp.where(b, 1); xp.sort(v, kind="bogo"); v.argsort(kind="x"); v.sort(kind="s"); xp.arange(3, dtype=bool); xp.arange(2, dtype=bool); xp.bincount(v); xp.meshgrid(m, v)[1]; xp.shares_memory(xp.broadcast_to(v, (2, 5)), v); np.may_share_memory(a, a[1])
# layouts of copies
a.T.copy().strides; copy.copy(a.T).strides; copy.deepcopy(a.T).strides; pickle.loads(pickle.dumps(a.T)).strides; pickle.loads(pickle.dumps(a.T)); xp.array(a.T).strides; np.copy(a.T).strides; copy.deepcopy(a).strides; copy.copy(a[:, ::2]).strides
np.copy(a.T, order="C").strides; xp.array(a.T, order="C").strides; copy.deepcopy([a, a])[0].strides; xp.array(a.T, ndmin=3).shape
# numbers, text, copies
float(v); int(v); complex(v); float(v[:0]); float(a.sum()); int(i[0]); operator.index(i[0]); math.sqrt(v[0]); f"{v[0]:.2f}"; "%d" % i[0]; round(float(v[0]), 1); sum(v); sorted(i); bool(a); str(a); repr(i)
round(v[0], 1); round(v[0]); round(f.mean(), 2); math.trunc(a[0, 0]); round(a)
x = weakref.ref(v); x() is v
xp.round(i * 13, -1); np.round(j, -1); i.round(-2); xp.round(j, 1); xp.linspace(-1.5, 1.5, 4, dtype=int); xp.linspace([0, 1], 5.7, 4, dtype="u1"); xp.linspace(0, 5, 4, dtype=int, retstep=True)
# Python integers that the type of the array does not have
j < 300; j == -1; j != 256; j >= -1; 300 > j; i == 2**70; i > -2**70; xp.less(300, j); np.equal(j, -1); (j < 300) & (j > 2); 300 in j; xp.less(j, 300, out=b); b; np.greater(j, -1, out=b); b; xp.maximum(j, 300)
xp.clip(j, -1, 300); j.clip(-5, 3); np.clip(j, 2, 999); xp.clip(j, 300, None); xp.clip(i, -2**70, 2**70)
xp.searchsorted(xp.sort(i), 2.5); xp.searchsorted(xp.sort(j), [1.5, 300]); xp.searchsorted(xp.sort(f), 0.25, side="right"); xp.sort(i).searchsorted(-0.5); xp.searchsorted([1, 2, 3], 2.5); xp.searchsorted(xp.sort(j), 300)
# operands of other classes
v + array.array("d", [1, 2, 3, 4, 5]); array.array("f", [1, 2, 3, 4, 5]) * v; v - memoryview(b"abcde"); v + bytearray(5); v + like; like - v; v += like; v; v == like; v @ like; v ** like; divmod(v, like); like < v; v[:] = like; v; v[:3] = array.array("i", [1, 2, 3]); v
v + collections.deque([1, 2, 3, 4, 5]); row * v; v / row; v[:] = row; v; xp.sin(like); xp.add(v, like); xp.sum(like); xp.mean(row); xp.stack([v, like]); xp.where(v > 0.5, like, v); xp.maximum(row, v); xp.asarray(like); v * {1: 2}; v + {1, 2}; v + b"abcde"; v + "abcde"
v + big; big * v; v[:] = big; v; xp.add(v, big); v < big; xp.where(v > 0.5, big, 0); xp.sum(big); v + askew; askew / v; v -= askew; v; v[:] = askew; v; v + big[::-1]; i[:5] + big.astype(">i2")
v + unlike; unlike - v; v * unlike; xp.add(v, unlike); v == other; v != other; v == unlike; v + other; other < v; 2 * numpys; v * numpys; numpys * v[0]
# out= and where= of other kinds
xp.add(v, 1, out=[v]); xp.add(v, 1, out="x"); xp.clip(v, 0, 1, out=3); xp.add(v, 1, where=True); xp.add(v, 1, out=v, where=[1, 0, 1, 0, 1]); v; xp.sqrt(v, out=v, where=True); v; xp.add(a, 1, out=a, where=[True, False, True, False]); a; xp.sum(a, out="x"); xp.add(v, 1, out=v, where=False); v
# results of reductions in other types
xp.cumsum(v * 3, out=i[:5]); i; np.add.reduce(v * 3, out=i[1, ...]); np.cumsum(i, out=f); f; xp.sum(a * 3, 0, out=i[:4]); i; np.add.accumulate(f * 9, out=i); i; xp.max(a * 9, 1, out=i[:3]); i; np.cumsum(i, dtype="f4"); xp.mean(i, dtype="i4"); xp.mean(a * 9, 0, dtype=int); i.mean(dtype="int64", keepdims=True); np.cumprod(v, out=v > 9)
# arguments that are no numbers of elements, and kinds of errors
xp.linspace(0, 1, 2.5); xp.linspace(f[0], 1, 3); xp.linspace(np.float32(0), 2.0, 3); xp.linspace(j[0], 9, 3); xp.arange(0, 1, 0); xp.repeat(v, -1); xp.histogram(v, 2.5); xp.sort(v[0]); v @= v; m @= v[:3]; m @= m; m; xp.can_cast("f8", "f4", "same_kind"); xp.can_cast("f8", "i4", casting="same_kind")
str(f[0]); str(f.max()); str(i[0]); str(b[1]); str(v.mean()); a.flat.copy(); a.T.flat.copy(); xp.argmax(c); c.argmin(); xp.argmax(c.reshape(2, 2), 0)
(a > 0) @ (a > 1).T; (a[0] > 0) @ (a[1] > 0); xp.einsum("ij,kj->ik", a > 0, a > 0); np.einsum("ij,kj->ik", a > 0, a > 1); xp.einsum("i->", b); xp.dot(b, b); xp.tensordot(a > 0, a > 0, 2); xp.inner(a > 0, a > 1); np.matmul(m > 1, m > 1, out=m > 2)
xp.histogram(v[:0], 3); xp.histogram(v, [3, 2, 1]); xp.histogram(v, [[1, 2]]); xp.histogram(v, 0); xp.histogram(v, 3, range=(2, 1)); xp.histogram(v * xp.nan, 3); xp.bincount(i - 20); xp.bincount(a > 0); xp.bincount(j, minlength=-1); xp.bincount(j[:0]); xp.bincount([]); xp.bincount([], minlength=3); xp.average(v, weights=v * 0)
pickle.loads(pickle.dumps(a)); copy.deepcopy(a); (1 < i) & (i < 5); 1 < i < 5; v.sum() / 2; [x.sum() for x in a]; 3 in i; any(b)
"""


KINDS = TypeError, ValueError, IndexError, OverflowError, AttributeError, ZeroDivisionError


class Like:
    """An object that NumPy can convert to an array."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(5.0) if dtype is None else np.arange(5.0).astype(dtype)


class Row:
    """A sequence that has only the methods of one."""

    def __len__(self):
        return 5

    def __getitem__(self, place):
        return range(1, 6)[place]


class Unlike:
    """An object that implements operations with arrays itself."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return ufunc.__name__


class Other:
    """An object that no operation accepts."""


class Numpys(np.ndarray):
    """An array class without a priority."""


# Operands by name: NumPy arrays with swapped bytes or without alignment, and objects of other classes.
OTHERS = {
    "like": Like(), "row": Row(), "unlike": Unlike(), "other": Other(), "big": np.arange(1, 6, dtype=">f8"),
    "askew": np.frombuffer(b"x" + np.arange(1.0, 6).tobytes(), "u1")[1:].view("f8"), "numpys": np.arange(5.0).view(Numpys),
}  # fmt: skip


def programs():
    """Generates statements, the last of which is an expression."""
    for line in PROGRAMS.strip().splitlines():
        if line.startswith("#"):
            continue
        before = []
        for statement in line.split("; "):
            try:
                compile(statement, "", "eval")
            except SyntaxError:
                before.append(statement)
                continue
            calls = statement.endswith((")", "]")) and statement.split("(")[0].rsplit(".", 1)[-1] in ("sort", "put", "at", "setflags", "partition")
            before.append(statement)
            if not calls or statement.startswith("xp.sort"):
                yield before
                before = []


def outcome(statements, xp):
    space = {"xp": xp, "np": np, "math": math, "operator": operator, "pickle": pickle, "copy": copy, "weakref": weakref, "array": array, "collections": collections}
    space |= OTHERS
    for name, x in ARRAYS.items():
        space[name] = x.copy() if xp is np else knp.asarray(x)
    try:
        for statement in statements[:-1]:
            exec(statement, space)
        return eval(statements[-1], space)
    except KINDS as error:
        return error


def difference(got, expected):
    """Returns how a result differs from NumPy's, or None."""
    if isinstance(got, Exception) or isinstance(expected, Exception):
        is_same = any(isinstance(got, kind) and isinstance(expected, kind) for kind in KINDS)
        return None if is_same else f"{type(got).__name__}: {got} instead of {type(expected).__name__}: {expected}"
    if isinstance(expected, (tuple, list)):
        if len(got) != len(expected):
            return f"{len(got)} results instead of {len(expected)}"
        return next(filter(None, map(difference, got, expected)), None)
    if isinstance(expected, np.ndarray) and expected.ndim and not isinstance(got, (kjit.Array, np.ndarray)):
        return f"a {type(got).__name__} instead of an array"
    got = got.to_host() if isinstance(got, kjit.Array) else got
    if isinstance(expected, (np.ndarray, np.generic)):
        if not isinstance(expected, np.bool_) and (np.shape(got) != expected.shape or np.asarray(got).dtype != expected.dtype):
            return f"{np.asarray(got).dtype}{list(np.shape(got))} instead of {expected.dtype}{list(expected.shape)}"
    elif isinstance(expected, (str, np.dtype, type(None))):
        return None if got == expected else f"{got!r} instead of {expected!r}"
    if np.asarray(expected).dtype.kind not in "biufc":
        return None if np.array_equal(got, expected) else f"{got!r} instead of {expected!r}"
    bound = 1e-3 if np.asarray(expected).dtype.itemsize <= 4 else 1e-9
    return None if np.allclose(got, expected, rtol=bound, atol=bound, equal_nan=True) else f"{got!r} instead of {expected!r}"


# Programs whose results depend on the NumPy version: before version 2, Python numbers had no types of their own.
SINCE_2 = ("np.float64(2.5)", "np.int16(300)", "j += 300", "j += -1", "j[0] = 300", "xp.clip(j", "j.clip(-5", "np.clip(j", "xp.clip(i, -2", "xp.maximum(j, 300)", "xp.linspace(f[0]", "xp.linspace(np.float32", "v @= v", "m @= ")

chosen = {int(word) for word in sys.argv[1:]}
wrong = []
for number, statements in enumerate(programs()):
    if chosen and number not in chosen or np.__version__ < "2" and any(word in "; ".join(statements) for word in SINCE_2):
        continue
    expected, got = outcome(statements, np), outcome(statements, knp)
    found = difference(got, expected)
    if found:
        wrong.append(f"{number}: {'; '.join(statements)}: {found}")
        if chosen and isinstance(got, Exception):
            traceback.print_exception(got)
assert not wrong, "\n".join([f"seed {seed}", *wrong])


# Names that kjit.numpy lacks raise an error with a reason.
for name, reason in (("datetime64", "numbers and bools"), ("ma", "no masks"), ("ElementwiseKernel", "kjit.vectorize"), ("memmap", "numpy.memmap")):
    try:
        getattr(knp, name)
        raise AssertionError(name)
    except AttributeError as error:
        assert reason in str(error), error

# NumPy imports some modules at their first use. Classes that are not element types are not in the namespace.
assert knp.testing is np.testing and knp.polynomial is np.polynomial and not hasattr(knp, "character") and not hasattr(knp, "flexible")

# NumPy's AxisError is raised, with its attributes, also after pickling.
NumpysAxisError = getattr(np, "exceptions", np).AxisError
for call in (lambda: v.sum(axis=3), lambda: knp.swapaxes(v, 0, 3), lambda: np.moveaxis(v, 0, 3), lambda: knp.fft.fft(v, axis=3)):
    v = knp.ones(2)
    try:
        call()
        raise AssertionError("no axis 3")
    except NumpysAxisError as error:
        again = pickle.loads(pickle.dumps(error))
        assert type(error) is knp.AxisError and isinstance(error, kjit.Error) and (error.axis, error.ndim) == (3, 1)
        assert str(error) == str(again) and str(error).endswith("axis 3 is out of bounds for array of dimension 1") and again.axis == 3
assert str(knp.AxisError("no such axis")) == "no such axis" and knp.AxisError("no such axis").axis is None

# CuPy's functions that copy to the host.
four = knp.arange(4)
assert type(knp.asnumpy(four)) is np.ndarray and (four.get() == [0, 1, 2, 3]).all() and knp.asnumpy([1, 2]).sum() == 3
assert knp.get_array_module(1, four) is knp and knp.get_array_module(np.ones(2), 1) is np
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "elements")
    four.T.tofile(path)
    assert (np.fromfile(path, np.int64) == [0, 1, 2, 3]).all() and (knp.fromfile(path, dtype=knp.int64) == four).all()
    knp.savez(path + ".npz", four, part=four[1:])
    with knp.load(path + ".npz") as file:
        assert sorted(file.files) == ["arr_0", "part"] and "part" in file and len(file) == 2 and (file["part"] == [1, 2, 3]).all()
        assert all(type(x) is kjit.Array for x in file.values())
    four.dump(path)
    assert (knp.load(path, allow_pickle=True) == four).all() and (pickle.loads(four.dumps()) == four).all()


# Masked arrays, and NumPy classes with their own operators, are rejected rather than computed without the mask and
# operators.
masked, three = np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]), knp.ones(3)
assert (three + masked).mask.tolist() == (masked + three).mask.tolist() == [True, False, False] and type(three * masked) is type(masked)
assert (knp.ones((2, 2)) * np.matrix([[1, 2], [3, 4]])).tolist() == [[4, 6], [4, 6]]
for call in (lambda: knp.add(three, masked), lambda: three.__setitem__(slice(None), masked), lambda: knp.maximum(masked, 0)):
    try:
        call()
        raise AssertionError("no mask")
    except TypeError as error:
        assert "masks" in str(error), error


class Failing:
    """An index whose conversion fails, and which counts its conversions."""

    count = 0

    def __index__(self):
        self.count += 1
        raise KeyboardInterrupt


for key in (0, [0], np.asarray([0]), slice(0, 1), np.asarray([True])):
    try:
        knp.zeros(1, "u1")[key] = 300
        raise AssertionError(key)
    except OverflowError:
        pass
failing = Failing()
try:
    knp.zeros(4)[failing:]
except KeyboardInterrupt:
    assert failing.count == 1, failing.count
print(f"beside NumPy: {number + 1} programs are good", file=sys.stderr)

"""A stand-in for cuSOLVER and cuFFT in the memory of the host, computed by NumPy: functions with the parameters that NVIDIA's headers
declare, for column-major matrices. A function that gets other arguments than it is declared with raises."""
import contextlib
import ctypes

import numpy as np

TYPES = {"S": "f", "D": "d", "C": "F", "Z": "D"}


def memory(address, shape, code, order="F"):
    """Returns the elements at an address as an array."""
    count = int(np.prod(shape))
    raw = (ctypes.c_char * (count * np.dtype(code).itemsize)).from_address(address.value)
    return np.frombuffer(raw, code, count).reshape(shape, order=order)


def number(x):
    """An int parameter."""
    assert isinstance(x, (int, ctypes.c_int)), x
    return x if isinstance(x, int) else x.value


class Solver:
    """The functions of cuSOLVER for one element type."""

    def __init__(self, code):
        self.code, self.real = code, {"F": "f", "D": "d"}.get(code, code)

    def size(self, *arguments):
        arguments[-1]._obj.value = 7
        return 0

    def buffer(self, name, handle, *arguments):
        assert handle.value == 3 and len(arguments) == {"potrf": 5, "getrf": 5, "geqrf": 5, "orgqr": 7, "ungqr": 7, "gesvd": 3, "syevd": 7, "heevd": 7}[name]
        return self.size(*arguments)

    def potrf(self, handle, uplo, n, a, lda, work, lwork, info):
        assert uplo in (0, 1) and lda == n and number(lwork) == 7
        m = memory(a, (n, n), self.code)
        whole = np.triu(m) + np.triu(m, 1).conj().T if uplo else np.tril(m) + np.tril(m, -1).conj().T
        try:
            lower = np.linalg.cholesky(whole)
        except np.linalg.LinAlgError:
            memory(info, (1,), "i")[0] = 1
            return 0
        part = np.triu_indices(n) if uplo else np.tril_indices(n)
        m[part] = (lower.conj().T if uplo else lower)[part]
        return 0

    def getrf(self, handle, m, n, a, lda, work, pivots, info):
        assert lda == m == n
        x, places = memory(a, (n, n), self.code), memory(pivots, (n,), "i")
        for k in range(n):
            p = k + int(np.argmax(np.abs(x[k:, k])))
            places[k] = p + 1
            x[[k, p]] = x[[p, k]]
            if x[k, k] == 0:
                memory(info, (1,), "i")[0] = k + 1
                continue
            x[k + 1 :, k] /= x[k, k]
            x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
        return 0

    def getrs(self, handle, trans, n, nrhs, a, lda, pivots, b, ldb, info):
        assert lda == ldb == n and trans in (0, 1, 2)
        x, places, sides = memory(a, (n, n), self.code), memory(pivots, (n,), "i"), memory(b, (n, nrhs), self.code)
        whole = (np.tril(x, -1) + np.eye(n)) @ np.triu(x)
        for k in reversed(range(n)):
            whole[[k, places[k] - 1]] = whole[[places[k] - 1, k]]
        sides[...] = np.linalg.solve({0: whole, 1: whole.T, 2: whole.conj().T}[trans], sides)
        return 0

    def geqrf(self, handle, m, n, a, lda, tau, work, lwork, info):
        assert lda == m and number(lwork) == 7
        x = memory(a, (m, n), self.code)
        h, t = np.linalg.qr(x, mode="raw")
        x[...], memory(tau, (min(m, n),), self.code)[...] = h.T, t
        return 0

    def orgqr(self, handle, m, n, k, a, lda, tau, work, lwork, info):
        assert lda == m and m >= n >= k
        x, t = memory(a, (m, n), self.code), memory(tau, (k,), self.code)
        q = np.eye(m, dtype=self.code)
        for i in range(k):
            v = np.concatenate([np.zeros(i), [1], x[i + 1 :, i]])
            q = q @ (np.eye(m) - t[i] * np.outer(v, v.conj()))
        x[...] = q[:, :n]
        return 0

    ungqr = orgqr

    def syevd(self, handle, jobz, uplo, n, a, lda, w, work, lwork, info):
        assert lda == n and jobz in (0, 1)
        m = memory(a, (n, n), self.code)
        values, vectors = np.linalg.eigh(m, UPLO="LU"[uplo])
        memory(w, (n,), self.real)[...] = values
        m[...] = vectors if jobz else 0
        return 0

    heevd = syevd

    def gesvd(self, handle, jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork, info):
        assert m >= n and lda == ldu == m and ldvt == n, "cuSOLVER takes matrices that are at least as high as wide"
        jobs = bytes([jobu.value]), bytes([jobvt.value])
        left, values, right = np.linalg.svd(memory(a, (m, n), self.code), full_matrices=jobs[0] == b"A")
        memory(s, (n,), self.real)[...] = values
        if jobs[0] != b"N":
            memory(u, left.shape, self.code)[...] = left
            memory(vt, (n, n), self.code)[...] = right
        return 0


class Library:
    """Both libraries."""

    def __getattr__(self, name):
        assert name.startswith("cusolverDn"), name
        solver, function = Solver(TYPES[name[10]]), name[11:]
        complexes = {"orgqr": "SD", "ungqr": "CZ", "syevd": "SD", "heevd": "CZ"}
        assert name[10] in complexes.get(function.removesuffix("_bufferSize"), "SDCZ"), f"cuSOLVER has no {name}"
        if function.endswith("_bufferSize"):
            return lambda *arguments: solver.buffer(function[:-11], *arguments)
        return getattr(solver, function)

    def cusolverDnCreate(self, handle):
        handle._obj.value = 3
        return 0

    def cusolverDnSetStream(self, handle, stream):
        return 0

    plan = None

    def cufftPlanMany(self, plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch):
        assert rank == 1 and inembed is None and onembed is None
        self.plan = n[0], type, batch
        return 0

    def cufftSetStream(self, plan, stream):
        return 0

    def cufftDestroy(self, plan):
        self.plan = None
        return 0

    def _complex(self, code, source, target, direction):
        n, type, batch = self.plan
        assert type == {"F": 0x29, "D": 0x69}[code] and direction in (-1, 1)
        x = memory(source, (batch, n), code, "C")
        memory(target, (batch, n), code, "C")[...] = np.fft.fft(x) if direction == -1 else np.fft.ifft(x) * n
        return 0

    def cufftExecC2C(self, plan, source, target, direction):
        return self._complex("F", source, target, direction)

    def cufftExecZ2Z(self, plan, source, target, direction):
        return self._complex("D", source, target, direction)

    def _real(self, real, source, target):
        n, type, batch = self.plan
        assert type == {"f": 0x2A, "d": 0x6A}[real]
        memory(target, (batch, n // 2 + 1), real.upper(), "C")[...] = np.fft.rfft(memory(source, (batch, n), real, "C"))
        return 0

    def cufftExecR2C(self, plan, source, target):
        return self._real("f", source, target)

    def cufftExecD2Z(self, plan, source, target):
        return self._real("d", source, target)

    def _inverse(self, real, source, target):
        n, type, batch = self.plan
        assert type == {"f": 0x2C, "d": 0x6C}[real]
        x = memory(source, (batch, n // 2 + 1), real.upper(), "C")
        memory(target, (batch, n), real, "C")[...] = np.fft.irfft(x, n) * n
        x[...] = -1  # cuFFT may overwrite it
        return 0

    def cufftExecC2R(self, plan, source, target):
        return self._inverse("f", source, target)

    def cufftExecZ2D(self, plan, source, target):
        return self._inverse("d", source, target)


class Stream:
    handle = 5

    def synchronize(self):
        pass


class Place:
    stream = Stream()

    @contextlib.contextmanager
    def calls(self):
        yield self


def install():
    """Makes kjit call the stand-in for CPU arrays."""
    from kjit.numpy import _cufft, _cusolver, _lines, _nvidia, linalg

    made = Library()
    _nvidia.library = lambda name, what: made
    _nvidia.place = lambda device: Place()
    _nvidia.address = lambda x, element=0: ctypes.c_void_p(np.asarray(x).ctypes.data + element * x.dtype.itemsize)
    own = linalg._library
    linalg._library = lambda x, what: own(x, what) if what in ("eig", "eigvals") else _cusolver.checked(what)
    _lines.LIBRARIES["cpu"] = _cufft.transform

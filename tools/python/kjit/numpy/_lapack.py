"""Matrix decompositions by NumPy, for arrays on the CPU. _cusolver has the same functions for
arrays on a GPU."""

import numpy

from ._protocols import shared


def _results(made, device):
    return tuple(_results(each, device) for each in made) if isinstance(made, tuple) else shared(numpy.asarray(made), device)


def _function(name):
    """Returns the function of numpy.linalg, for kjit arrays."""
    function = getattr(numpy.linalg, name)

    def decomposed(*arrays, **options):
        return _results(function(*(numpy.asarray(x) for x in arrays), **options), arrays[0].device)

    decomposed.__name__ = name
    return decomposed


cholesky, inv, det, solve = (_function(name) for name in ("cholesky", "inv", "det", "solve"))
slogdet, eigh, eigvalsh, eig, eigvals = (_function(name) for name in ("slogdet", "eigh", "eigvalsh", "eig", "eigvals"))
_svd, _qr = _function("svd"), _function("qr")


def svd(x, full_matrices):
    """Returns U, the singular values and the conjugate transpose of V."""
    return _svd(x, full_matrices=full_matrices)


def svdvals(x):
    """Returns the singular values, largest first."""
    return _svd(x, compute_uv=False)


def qr(x, mode):
    """Returns Q and R."""
    return _qr(x, mode=mode)

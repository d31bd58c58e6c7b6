"""Solves least-squares problems for several damping factors at once, with LSMR (Fong and Saunders,
2011). The names of the scalars are the paper's.

The Golub-Kahan bidiagonalization does not depend on the damping factor, so one pass over the matrix
serves all factors. Only the rotations, which are host numbers, and the vectors h, hbar and x exist
once for each factor. The vectors u and v are stored before normalization; their norms are beta and
alpha.
"""

from . import _kjit, _state, dtypes
from ._algorithms import map
from ._arrays import array
from ._errors import ArgumentError
from ._products import CSR, csr, einsum, matmul
from ._systems import LinearOperator, Solution, _check_array, _matrix_of, _norm, _operand, _product

_OVERFLOW, _SOLVED, _LEAST_SQUARES, _CONDITION, _ITERATIONS = 5, 0, 1, 2, 3


def _combine(x, y, a, b):
    return a * x + b * y


def _along(x, y, a):
    return x + a * y


def _inverse(x):
    return 1 / x if x > 0 else 0.0


def checked_damps(damp):
    """Returns the damping factors as a one-dimensional NumPy array. Raises ArgumentError for
    another shape, and for negative, infinite or NaN factors."""
    import numpy

    damps = numpy.asarray(damp.to_host() if isinstance(damp, _kjit.Array) else damp, numpy.float64)
    if damps.ndim != 1 or not damps.size:
        raise ArgumentError(f"damp must be a number or a nonempty one-dimensional array, not an array of the shape {damps.shape}")
    is_wrong = ~(numpy.isfinite(damps) & (damps >= 0))
    if is_wrong.any():
        raise ArgumentError(f"damp contains {damps[is_wrong][0]:g}, but its numbers must be finite and must not be negative")
    return damps


class _Rotations:
    """The iteration's scalars on the host. Each is an array with an element for each damping
    factor."""

    def __init__(self, np, damps, alpha, beta):
        def ones():
            return np.ones(damps.shape)

        self.np, self.damps, self.alpha, self.beta, self.norm_b = np, damps, alpha, beta, beta
        self.rho, self.rhobar, self.cbar, self.rhodold = ones(), ones(), ones(), ones()
        self.alphabar, self.zetabar, self.betadd = alpha * ones(), alpha * beta * ones(), beta * ones()
        self.sbar, self.zeta, self.betad, self.tautilde, self.thetatilde, self.squares = (0 * ones() for _ in range(6))
        self.norm_a_squared, self.greatest, self.least = alpha * alpha, 0 * ones(), np.finfo(np.float64).max * ones()
        self.iterations = 0

    def rotate(self, alpha, beta):
        """Performs one iteration. Returns the coefficients for the updates of hbar, x and h."""
        np = self.np
        self.iterations += 1
        self.alpha, self.beta = alpha, beta
        alphahat = np.hypot(self.alphabar, self.damps)
        chat, shat = self.alphabar / alphahat, self.damps / alphahat
        rhoold, rhobarold, zetaold = self.rho, self.rhobar, self.zeta
        self.rho = np.hypot(alphahat, beta)
        c, s = alphahat / self.rho, beta / self.rho
        thetanew = s * alpha
        self.alphabar = c * alpha
        thetabar, rhotemp = self.sbar * self.rho, self.cbar * self.rho
        self.rhobar = np.hypot(rhotemp, thetanew)
        self.cbar, self.sbar = rhotemp / self.rhobar, thetanew / self.rhobar
        self.zeta, self.zetabar = self.cbar * self.zetabar, -self.sbar * self.zetabar
        self._estimate_residual(chat, shat, c, s, thetabar, zetaold)
        self._estimate_norms(rhobarold, rhotemp)
        return -thetabar * self.rho / (rhoold * rhobarold), self.zeta / (self.rho * self.rhobar), -thetanew / self.rho

    def _estimate_residual(self, chat, shat, c, s, thetabar, zetaold):
        """Estimates the norm of the residual by two more rotations of the right-hand side (section 5.2 of the paper)."""
        np = self.np
        betaacute, betacheck = chat * self.betadd, -shat * self.betadd
        rhotilde = np.hypot(self.rhodold, thetabar)
        ctilde, stilde, thetatildeold = self.rhodold / rhotilde, thetabar / rhotilde, self.thetatilde
        self.betadd = -s * betaacute
        self.thetatilde, self.rhodold = stilde * self.rhobar, ctilde * self.rhobar
        self.betad = -stilde * self.betad + ctilde * c * betaacute
        self.tautilde = (zetaold - thetatildeold * self.tautilde) / rhotilde
        taud = (self.zeta - self.thetatilde * self.tautilde) / self.rhodold
        self.squares = self.squares + betacheck * betacheck
        self.residual_norm = np.sqrt(self.squares + (self.betad - taud) ** 2 + self.betadd**2)

    def _estimate_norms(self, rhobarold, rhotemp):
        np = self.np
        self.norm_a_squared += self.beta * self.beta
        self.matrix_norm = self.norm_a_squared**0.5
        self.norm_a_squared += self.alpha * self.alpha
        self.greatest = np.maximum(self.greatest, rhobarold)
        if self.iterations > 1:
            self.least = np.minimum(self.least, rhobarold)
        self.condition = np.maximum(self.greatest, rhotemp) / np.minimum(self.least, rhotemp)
        self.normal_residual_norm = abs(self.zetabar)

    def statuses(self, solution_norm, numbers, limit):
        """Returns for each factor the status with which its iteration ends, or -1 if it continues."""
        np, (of_a, of_b, most) = self.np, numbers
        goal = of_b * self.norm_b + of_a * self.matrix_norm * solution_norm
        normal = self.normal_residual_norm <= of_a * self.matrix_norm * self.residual_norm
        reasons = (
            (~(np.isfinite(self.residual_norm) & np.isfinite(solution_norm)), _OVERFLOW),
            (self.residual_norm <= goal, _SOLVED),
            (normal, _LEAST_SQUARES),
            (self.condition >= most, _CONDITION),
            (np.full(normal.shape, self.iterations >= limit), _ITERATIONS),
        )
        return np.select([reason for reason, _ in reasons], [status for _, status in reasons], -1)


class _Vectors:
    """The vectors on the device: u and v, and h, hbar and x with a row for each damping factor."""

    def __init__(self, np, a, b, count, transposed, options):
        is_own = isinstance(b, _kjit.Array)
        self.place = b.device if is_own else options.get("device") or _state.device()
        self.element = b.dtype if is_own else dtypes.name_of(b.dtype)
        self.options = options
        if isinstance(a, CSR):
            is_here = isinstance(a.data, _kjit.Array)
            self.a = a if is_here else csr(a, device=self.place)
            self.turned = self.a.T if transposed is None else csr(transposed, device=None if is_here else self.place)
        elif isinstance(a, LinearOperator):
            if not a.multiply_transposed:
                raise ArgumentError("the operator has no function multiply_transposed", "KJIT_ERROR_MISUSE")
            self.a, self.turned = a, LinearOperator(a.shape[::-1], a.multiply_transposed)
        else:
            self.a = array(a, device=self.place)
            self.turned = self.a.T
        if self.element not in ("f32", "f64"):
            raise TypeError(f"the solvers compute with float32 and float64, but b has the type {dtypes.SCALARS[self.element].name}")
        self.u, self.v = self.zeros(np, a.shape[0]), self.zeros(np, a.shape[1])
        self.h, self.hbar, self.x = (self.zeros(np, (count, a.shape[1])) for _ in range(3))

    def zeros(self, np, shape):
        return array(np.zeros(shape, np.float32 if self.element == "f32" else np.float64), device=self.place)

    def product(self, matrix, x):
        if isinstance(matrix, CSR):
            return matrix.dot(x, **self.options)
        return _product(matrix, x, x, self.options) if isinstance(matrix, LinearOperator) else matmul(matrix, x, **self.options)

    def factors(self, np, numbers):
        return array(np.ascontiguousarray(numbers[:, None], np.float64), device=self.place)

    def norms(self, np):
        """Returns the norm of each row of x."""
        squares = einsum("ki,ki->k", self.x, self.x, accumulator="f64", **self.options)
        return np.sqrt(squares.to_host().astype(np.float64))


def _next(vectors, matrix, x, y, of_product, of_y):
    """Sets y to of_product * matrix x + of_y * y, and returns the norm of y."""
    found = vectors.product(matrix, x)
    map(_combine, found, y, of_product, of_y, out=y, **vectors.options)
    return _norm(y, vectors.options)


def _iterate(np, w, damps, numbers, limit):
    """Iterates until all factors are finished. Returns the results by name, each an array with an
    element for each factor."""
    beta = _norm(w.u, w.options)
    alpha = _next(w, w.turned, w.u, w.v, _inverse(beta), 0.0)
    r = _Rotations(np, damps, alpha, beta)
    names = ("status", "iterations", "residual_norm", "normal_residual_norm", "matrix_norm", "condition", "solution_norm")
    found = {name: np.zeros(damps.shape, int if name in names[:2] else float) for name in names}
    found["residual_norm"][:], found["matrix_norm"][:], found["condition"][:] = beta, alpha, 1
    found["normal_residual_norm"][:] = alpha * beta
    found["status"][:] = _OVERFLOW if not np.isfinite(alpha * beta) else _LEAST_SQUARES if beta else _SOLVED
    is_active = np.full(damps.shape, bool(alpha * beta) and bool(np.isfinite(alpha * beta)))
    map(_combine, w.v, w.h, _inverse(alpha), 0.0, out=w.h, **w.options)
    while is_active.any():
        old = r.alpha, r.beta
        beta = _next(w, w.a, w.v, w.u, _inverse(old[0]), -old[0] * _inverse(old[1]))
        alpha = _next(w, w.turned, w.u, w.v, _inverse(beta), -beta * _inverse(old[0]))
        of_hbar, of_x, of_h = (w.factors(np, np.where(is_active, each, 0)) for each in r.rotate(alpha, beta))
        map(_along, w.h, w.hbar, of_hbar, out=w.hbar, **w.options)
        map(_along, w.x, w.hbar, of_x, out=w.x, **w.options)
        map(_combine, w.v, w.h, _inverse(alpha), of_h, out=w.h, **w.options)
        solution_norm = w.norms(np)
        status = r.statuses(solution_norm, numbers, limit)
        now = {"status": status, "solution_norm": solution_norm, **{name: getattr(r, name) for name in names[1:6]}}
        for name in names:
            found[name] = np.where(is_active, now[name], found[name])
        is_active &= status < 0
    return found


def solve(a, b, damps, numbers, limit, x0, transposed, out, options):
    """Solves the problem for each damping factor. Returns a Solution that has, for each factor, a row of x and an
    element of each other field."""
    import numpy as np

    a, b = _matrix_of(a), _operand(b)
    _check_array("b", b)
    if not isinstance(a, (CSR, LinearOperator)):
        a = _operand(a)
        _check_array("a", a)
    if len(a.shape) != 2 or tuple(b.shape) != (a.shape[0],):
        raise ArgumentError(f"b has the shape {tuple(b.shape)}, but a matrix of the shape {tuple(a.shape)} needs a vector with one element for each row")
    w = _Vectors(np, a, b, len(damps), transposed, options)
    given = array(b, device=w.place)
    map(_combine, given, given, 1.0, 0.0, out=w.u, **options)
    norm_b = _norm(w.u, options)
    start = None if x0 is None else array(_operand(x0), device=w.place)
    if start is not None:
        if tuple(start.shape) != (a.shape[1],):
            raise ArgumentError(f"`x0` has the shape {tuple(start.shape)}: expected ({a.shape[1]},)")
        map(_along, w.u, w.product(w.a, start), -1.0, out=w.u, **options)
    rounding = float(np.finfo(np.float32 if w.element == "f32" else np.float64).eps)
    of_a, of_b, most = max(numbers[0], rounding), max(numbers[1], rounding), min(numbers[2], 1 / rounding)
    rest = _norm(w.u, options)
    of_b = of_b * norm_b / rest if start is not None and rest else of_b
    with np.errstate(all="ignore"):
        found = _iterate(np, w, damps, (of_a, of_b, most), limit or min(a.shape))
    if start is not None:
        map(_along, w.x, start, 1.0, out=w.x, **options)
        found["solution_norm"] = w.norms(np)
    x = _stored(w, b, out, options)
    text = [_kjit.solve_status_text(int(status)) for status in found["status"]]
    return Solution(x, found.pop("status"), text, **found)


def _stored(w, b, out, options):
    """Returns the rows of x: in `out` if it is given, otherwise in a kjit array if b is one, or in
    a NumPy array."""
    if out is not None:
        return map(_combine, w.x, w.x, 1.0, 0.0, out=out, **options)
    return w.x if isinstance(b, _kjit.Array) else w.x.to_host()

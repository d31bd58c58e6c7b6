"""Discrete Fourier transforms: the extension `fft` of the Python array API standard. NumPy computes
them on the CPU and cuFFT on a GPU.

float32 and complex64 are transformed in these types, and integers as float64. norm: "backward"
divides the inverse transforms by the number of elements, "forward" divides the forward transforms,
and "ortho" divides both by the square root of this number. Other values raise ValueError. Without
cuFFT, a transform on a GPU raises kjit.numpy.LibraryError.
"""

from . import _beyond, _creation, _dtypes, _engine, _lines, _manipulation
from ._engine import normalize_axes, normalize_axis
from ._errors import PromotionError, ShapeError
from ._table import ROWS

_NORMS = ("backward", "ortho", "forward")


def _prepared(x, what, kinds="iuf"):
    """Returns x converted to a type in which transforms are computed. Raises PromotionError for
    other kinds of types."""
    text = _dtypes.text_of(x)
    if _dtypes.KIND[text] not in kinds:
        raise PromotionError(f"{what} does not support arrays of {_dtypes.BY_TEXT[text].name}")
    if _dtypes.KIND[text] in "iu":
        return _engine.cast(x, "f64")
    return _engine.converted(x, {"f16": "f32", "bf16": "f32"}.get(text, text))


def _checked_axis(x, axis, what):
    if not x.ndim:
        raise ShapeError(f"{what}: x must have at least one dimension")
    return normalize_axis(axis, x.ndim)


def _with_extent(x, extent, axis, what):
    """Returns x, cut or padded with zeros to a number of elements along an axis. Raises ShapeError
    for less than one element."""
    if extent < 1:
        raise ShapeError(f"{what}: a transform must have at least one element, not {extent}")
    before = (slice(None),) * axis
    if x.shape[axis] >= extent:
        return x[(*before, slice(0, extent))]
    widths = [(0, extent - x.shape[axis] if i == axis else 0) for i in range(x.ndim)]
    return _manipulation.pad(x, widths)


def _line(x, kind, count, axis, norm, what, is_inverse=False):
    """Returns a normalized transform along one axis. kind: see _lines.transform; count: the
    transform length."""
    if norm not in _NORMS:
        raise ValueError(f'{what}: norm must be "backward", "ortho" or "forward", not {norm!r}')
    stored = count // 2 + 1 if kind == "c2r" else count
    made = _lines.transform(kind, _with_extent(x, stored, axis, what), count, axis, is_inverse, what)
    factor = {"backward": 1 / count if is_inverse else 1, "ortho": count**-0.5, "forward": 1 if is_inverse else 1 / count}[norm]
    return made if factor == 1 else _engine.elementwise(ROWS["multiply"], (made, float(factor)), made)


def _complex(x, what):
    x = _prepared(x, what, "iufc")
    return _engine.converted(x, _dtypes.WHOLE.get(x.dtype.text, x.dtype.text))


def fft(x, /, *, n=None, axis=-1, norm="backward"):
    """Returns the Fourier transform along an axis. n: the length, to which x is cut or padded with
    zeros; the default is the axis extent."""
    axis = _checked_axis(x, axis, "fft")
    return _line(_complex(x, "fft"), "c2c", x.shape[axis] if n is None else n, axis, norm, "fft")


def ifft(x, /, *, n=None, axis=-1, norm="backward"):
    """Returns the inverse Fourier transform along an axis. n: as in `fft`."""
    axis = _checked_axis(x, axis, "ifft")
    return _line(_complex(x, "ifft"), "c2c", x.shape[axis] if n is None else n, axis, norm, "ifft", True)


def rfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Returns the Fourier transform of real numbers along an axis: the first n // 2 + 1 elements,
    which determine the others. n: as in `fft`."""
    axis = _checked_axis(x, axis, "rfft")
    return _line(_prepared(x, "rfft"), "r2c", x.shape[axis] if n is None else n, axis, norm, "rfft")


def irfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Returns the real inverse of `rfft` along an axis. n: the length of the result; the default
    for m input elements is 2 * (m - 1)."""
    axis = _checked_axis(x, axis, "irfft")
    return _line(_complex(x, "irfft"), "c2r", 2 * (x.shape[axis] - 1) if n is None else n, axis, norm, "irfft", True)


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Returns the real Fourier transform of an array with Hermitian symmetry, of which x is the
    first half. n: the length of the result; the default for m input elements is 2 * (m - 1)."""
    axis = _checked_axis(x, axis, "hfft")
    conjugate = _engine.elementwise(ROWS["conj"], (_complex(x, "hfft"),))
    return irfft(conjugate, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm))


def ihfft(x, /, *, n=None, axis=-1, norm="backward"):
    """Returns the inverse of `hfft` along an axis."""
    made = rfft(x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm))
    return _engine.elementwise(ROWS["conj"], (made,), made)


def _axes(x, s, axes, what):
    """Returns a list of (axis, number of elements) for a transform along several axes."""
    if axes is None:
        axes = range(x.ndim) if s is None else range(x.ndim - len(s), x.ndim)
    axes = normalize_axes(tuple(axes), x.ndim)
    extents = [x.shape[axis] for axis in axes] if s is None else [x.shape[axis] if n == -1 else n for n, axis in zip(s, axes)]
    if s is not None and len(s) != len(axes):
        raise ShapeError(f"{what}: s has {len(s)} numbers, but there are {len(axes)} axes")
    return list(zip(axes, extents))


def fftn(x, /, *, s=None, axes=None, norm="backward"):
    """Returns the Fourier transform along several axes, by default all. s: the lengths along the
    axes."""
    x = x if x.ndim else _creation.asarray(x)
    for axis, n in reversed(_axes(x, s, axes, "fftn")):
        x = fft(x, n=n, axis=axis, norm=norm)
    return x


def ifftn(x, /, *, s=None, axes=None, norm="backward"):
    """Returns the inverse of `fftn`."""
    x = x if x.ndim else _creation.asarray(x)
    for axis, n in reversed(_axes(x, s, axes, "ifftn")):
        x = ifft(x, n=n, axis=axis, norm=norm)
    return x


def rfftn(x, /, *, s=None, axes=None, norm="backward"):
    """Returns the Fourier transform of real numbers along several axes. The last axis has the first
    half of the elements, n // 2 + 1."""
    *others, (axis, n) = _axes(x, s, axes, "rfftn")
    x = rfft(x, n=n, axis=axis, norm=norm)
    for each, extent in reversed(others):
        x = fft(x, n=extent, axis=each, norm=norm)
    return x


def irfftn(x, /, *, s=None, axes=None, norm="backward"):
    """Returns the real inverse of `rfftn`. s: the result lengths; the default for the last axis
    with m elements is 2 * (m - 1)."""
    *others, (axis, n) = _axes(x, s, axes, "irfftn")
    for each, extent in others:
        x = ifft(x, n=extent, axis=each, norm=norm)
    return irfft(x, n=None if s is None or s[-1] == -1 else n, axis=axis, norm=norm)


# ---- frequencies ----


def _frequencies(n, d, count, first, dtype, device):
    text = "f64" if dtype is None else _dtypes.dtype_of(dtype).text
    if _dtypes.KIND[text] != "f":
        raise PromotionError(f"frequencies must have a float type, not {_dtypes.BY_TEXT[text].name}")
    made = _creation.arange(count, device=device)
    shifted = _engine.elementwise(ROWS["subtract"], (_engine.elementwise(ROWS["remainder"], (made + first, n)), first)) if first else made
    return _engine.converted(_engine.elementwise(ROWS["divide"], (shifted, float(n * d))), text)


def fftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Returns the frequencies of the elements of `fft` for n samples at distance d: zero, the
    positive and then the negative frequencies."""
    return _frequencies(n, d, n, n // 2, dtype, device)


def rfftfreq(n, /, *, d=1.0, dtype=None, device=None):
    """Returns the frequencies of the elements of `rfft` for n samples at distance d."""
    return _frequencies(n, d, n // 2 + 1, 0, dtype, device)


def fftshift(x, /, *, axes=None):
    """Returns x with the element of frequency 0 moved to the middle of each axis, by default of all
    axes."""
    axes = normalize_axes(axes, x.ndim)
    return _manipulation.roll(x, tuple(x.shape[axis] // 2 for axis in axes), axis=axes) if axes else _engine.copied(x)


def ifftshift(x, /, *, axes=None):
    """Returns the inverse of `fftshift`."""
    axes = normalize_axes(axes, x.ndim)
    return _manipulation.roll(x, tuple(-(x.shape[axis] // 2) for axis in axes), axis=axes) if axes else _engine.copied(x)


__all__ = (
    "fft", "ifft", "fftn", "ifftn", "rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft", "fftfreq", "rfftfreq", "fftshift", "ifftshift",
)  # fmt: skip


def _numpys():
    import numpy

    return numpy.fft


for _name in __all__:
    if not isinstance(globals()[_name], type):
        globals()[_name] = _beyond.widened(globals()[_name], _numpys)


def __getattr__(name):
    return _beyond.attribute(__name__, name, _numpys)

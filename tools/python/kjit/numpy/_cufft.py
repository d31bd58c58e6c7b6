"""Fourier transforms of arrays on a GPU by cuFFT; see _lines."""

import ctypes

from . import _engine, _manipulation, _nvidia
from ._errors import ShapeError

# The cuFFT plan type and the function that executes it, by transform kind and real number type.
_PLANS = {
    ("c2c", "f32"): (0x29, "cufftExecC2C"), ("c2c", "f64"): (0x69, "cufftExecZ2Z"), ("r2c", "f32"): (0x2A, "cufftExecR2C"),
    ("r2c", "f64"): (0x6A, "cufftExecD2Z"), ("c2r", "f32"): (0x2C, "cufftExecC2R"), ("c2r", "f64"): (0x6C, "cufftExecZ2D"),
}  # fmt: skip
_FORWARD, _INVERSE = -1, 1
_MOST = 2**31 - 1


def transform(kind, x, count, axis, is_inverse, text, what):
    """Returns a new array of type `text` with the unnormalized transform along an axis. Raises
    LibraryError without cuFFT."""
    library = _nvidia.library("cuFFT", f"fft.{what}")
    # a copy, because cuFFT overwrites the operand of some transforms
    lines = _engine.copied(_manipulation.moveaxis(x, axis, -1))
    extent = {"c2c": count, "r2c": count // 2 + 1, "c2r": count}[kind]
    made = _engine.new((*lines.shape[:-1], extent), text, x.device)
    batch = made.size // extent
    if count > _MOST or batch > _MOST:
        raise ShapeError(f"{what}: {batch} transforms of {count} elements are more than cuFFT takes")
    if batch:
        _run(library, kind, "f32" if text in ("f32", "c64") else "f64", lines, made, count, batch, is_inverse)
    return _engine.copied(_manipulation.moveaxis(made, -1, axis))


def _run(library, kind, part, source, target, count, batch, is_inverse):
    number, name = _PLANS[kind, part]
    place, plan = _nvidia.place(source.device), ctypes.c_int()
    extents = (ctypes.c_int * 1)(count)
    with place.calls():
        made = library.cufftPlanMany(ctypes.byref(plan), 1, extents, None, 1, count, None, 1, count, number, batch)
        _nvidia.check(made, "cufftPlanMany")
        try:
            _nvidia.check(library.cufftSetStream(plan, ctypes.c_void_p(place.stream.handle)), "cufftSetStream")
            direction = (_INVERSE if is_inverse else _FORWARD,) if kind == "c2c" else ()
            _nvidia.check(getattr(library, name)(plan, _nvidia.address(source), _nvidia.address(target), *direction), name)
            place.stream.synchronize()
        finally:
            library.cufftDestroy(plan)

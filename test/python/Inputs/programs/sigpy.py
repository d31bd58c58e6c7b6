"""Image reconstruction: interpolation and gridding for non-uniform Fourier transforms, wavelet thresholds."""
from program_help import bare, plane, random

bare("sigpy")
from sigpy import interp, thresh  # noqa: E402


def image():
    return plane((2, 12, 14)) + 1j * plane((2, 12, 14), seed=2)


def points(n=40):
    return random(3).uniform(-5, 5, (n, 2))


def check_interpolate_spline():
    return interp.interpolate(image(), points(), kernel="spline", width=2, param=1)


def check_interpolate_kaiser_bessel():
    return interp.interpolate(image(), points(), kernel="kaiser_bessel", width=4, param=5.0)


def check_interpolate_line():
    return interp.interpolate(plane((15,)), random(3).uniform(-6, 6, (20, 1)), kernel="kaiser_bessel", width=3, param=4.0)


def check_gridding():
    values = random(4).uniform(-1, 1, (2, 40)) + 1j
    return interp.gridding(values, points(), (2, 12, 14), kernel="kaiser_bessel", width=4, param=5.0)


def check_gridding_volume():
    return interp.gridding(random(4).uniform(-1, 1, 30), random(5).uniform(-3, 3, (30, 3)), (8, 9, 10), kernel="spline", width=2, param=1)


def check_thresholds():
    return thresh.soft_thresh(20.0, image()), thresh.hard_thresh(20.0, plane())

"""Audio: the loops that resample a signal."""
import numpy as np
from program_help import bare, random

bare("resampy")
from resampy import interpn  # noqa: E402


def arguments():
    window = np.hanning(129)[64:] * np.sinc(np.linspace(0, 8, 65))
    delta = np.append(np.diff(window), 0.0)
    return random().uniform(-1, 1, (2, 80)), np.arange(60) * 1.3, window, delta, 8, 0.75


def check_serial():
    y = np.zeros((2, 60))
    interpn.resample_f_s(*arguments(), y)
    return y


def check_parallel():
    y = np.zeros((2, 60))
    interpn.resample_f_p(*arguments(), y)
    return y


def check_loop():
    x, *rest = arguments()
    y = np.zeros(60)
    interpn._resample_loop_s(x[0], *rest, y)
    return y


def check_loop_of_float32():
    x, t, *rest = arguments()
    y = np.zeros(60, "f4")
    interpn._resample_loop_p(x[0].astype("f4"), t, *rest, y)
    return y

"""Seismology: dispersion curves of surface waves in layered ground."""
import sys
import types

import numpy as np

for name in ("matplotlib", "matplotlib.pyplot"):
    sys.modules[name] = types.ModuleType(name)  # for pictures, which no check draws
import disba  # noqa: E402

MODEL = np.array([[10.0, 7.0, 3.5, 2.0], [10.0, 6.8, 3.4, 2.0], [10.0, 7.0, 3.5, 2.0], [10.0, 7.6, 3.8, 2.0], [10.0, 8.4, 4.2, 2.0], [10.0, 9.0, 4.5, 2.0]])
PERIODS = np.logspace(0.2, 1.5, 12)


def of(curve, wave, mode=0):
    found = curve(PERIODS, mode=mode, wave=wave)
    return np.asarray(found.period), np.asarray(found.velocity)


def check_rayleigh():
    return of(disba.PhaseDispersion(*MODEL.T), "rayleigh")


def check_rayleigh_fast_delta():
    return of(disba.PhaseDispersion(*MODEL.T, algorithm="fast-delta"), "rayleigh", 1)


def check_love():
    return of(disba.PhaseDispersion(*MODEL.T), "love", 1)


def check_group():
    return of(disba.GroupDispersion(*MODEL.T), "rayleigh")


def check_ellipticity():
    found = disba.Ellipticity(*MODEL.T)(PERIODS)
    return np.asarray(found.period), np.asarray(found.ellipticity)


def check_eigenfunctions():
    found = disba.EigenFunction(*MODEL.T)(20.0, mode=0, wave="rayleigh")
    return np.asarray(found.uz), np.asarray(found.ur)


def check_sensitivity():
    found = disba.PhaseSensitivity(*MODEL.T)(20.0, mode=0, wave="love", parameter="velocity_s")
    return np.asarray(found.kernel)

"""Matrix profiles of time series: kernels for a GPU and functions on the cores."""
import numpy as np
from program_help import random

import stumpy
from stumpy import core


def series(n=64, seed=1):
    return random(seed).uniform(-10, 10, n).cumsum()


def numbers(profile):
    return np.asarray(profile[:, 0], "f8"), np.asarray(profile[:, 1:], "i8")


def check_gpu_stump():
    return numbers(stumpy.gpu_stump(series(), 8))


def check_gpu_stump_of_two():
    return numbers(stumpy.gpu_stump(series(), 8, series(40, 2), ignore_trivial=False, k=1))


def check_gpu_aamp():
    return numbers(stumpy.gpu_aamp(series(), 8))


def check_stump():
    return numbers(stumpy.stump(series(), 8))


def check_stump_of_more_neighbours():
    profile = stumpy.stump(series(), 8, k=3)
    return np.asarray(profile[:, :3], "f8"), np.asarray(profile[:, 3:], "i8")


def check_aamp():
    return numbers(stumpy.aamp(series(), 8))


def check_mstump():
    return stumpy.mstump(np.array([series(), series(64, 2)]), 8)


def check_mass():
    return stumpy.mass(series(8, 3), series())


def check_scrump():
    approximate = stumpy.scrump(series(), 8, percentage=1.0, pre_scrump=False)
    approximate.update()
    return np.asarray(approximate.P_, "f8")


def check_distance_matrix():
    means, deviations = core.compute_mean_std(series(), 8)
    return means, deviations


def check_floss():
    profile = stumpy.stump(series(), 8)
    return stumpy.fluss(profile[:, 1], L=8, n_regimes=2, excl_factor=1)[0]


def check_snippets():
    found = stumpy.snippets(series(48), 12, 2)
    return [np.asarray(v) for v in found[:4]]

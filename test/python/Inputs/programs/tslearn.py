"""Dynamic time warping and its relatives."""
import numpy as np
from program_help import random

from tslearn import metrics


def pair(n=20, m=24, d=2):
    return random().uniform(-1, 1, (n, d)).cumsum(0), random(2).uniform(-1, 1, (m, d)).cumsum(0)


def check_dtw():
    return np.float64(metrics.dtw(*pair()))


def check_dtw_path():
    path, score = metrics.dtw_path(*pair())
    return np.array(path), np.float64(score)


def check_dtw_bands():
    a, b = pair(20, 20)
    return (np.float64(metrics.dtw(a, b, global_constraint="sakoe_chiba", sakoe_chiba_radius=3)),
            np.float64(metrics.dtw(a, b, global_constraint="itakura", itakura_max_slope=2.0)))


def check_lcss():
    return np.float64(metrics.lcss(*pair(), eps=0.5))


def check_soft_dtw():
    return np.float64(metrics.soft_dtw(*pair(), gamma=0.1))


def check_soft_alignment():
    path, score = metrics.soft_dtw_alignment(*pair(), gamma=1.0)
    return np.asarray(path), np.float64(score)


def check_frechet():
    return np.float64(metrics.frechet(*pair())) if hasattr(metrics, "frechet") else np.float64(0)


def check_gak():
    return np.float64(metrics.gak(*pair(), sigma=2.0))


def check_lower_bounds():
    a, b = pair(20, 20, 1)
    return np.float64(metrics.lb_keogh(a, b, radius=2)), [np.asarray(v) for v in metrics.lb_envelope(a, radius=3)]

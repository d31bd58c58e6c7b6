"""Statistics of moving windows: ufuncs that guvectorize creates."""
import numpy as np
from program_help import plane

import numbagg


def data():
    values = plane((4, 60))
    values[1, 7:12] = np.nan
    return values


def check_moving():
    return [getattr(numbagg, n)(data(), window=5, min_count=2) for n in ("move_mean", "move_sum", "move_std", "move_var")]


def check_moving_pairs():
    return [getattr(numbagg, n)(data(), data()[::-1].copy(), window=6, min_count=3) for n in ("move_cov", "move_corr")]


def check_exponential():
    return [getattr(numbagg, n)(data(), alpha=0.2) for n in ("move_exp_nanmean", "move_exp_nansum", "move_exp_nanvar", "move_exp_nancount")]


def check_reductions():
    return [getattr(numbagg, n)(data(), axis=1) for n in ("nanmean", "nansum", "nanstd", "nanvar", "nanmin", "nanmax", "nancount", "allnan", "anynan")]


def check_places():
    return [getattr(numbagg, n)(data(), axis=1) for n in ("nanargmax", "nanargmin")]


def check_fill():
    return numbagg.ffill(data()), numbagg.bfill(data())


def check_groups():
    labels = np.arange(60) % 7
    return [getattr(numbagg, n)(data(), labels, axis=1) for n in ("group_nanmean", "group_nansum", "group_nancount", "group_nanmax", "group_nanvar")]


def check_quantiles():
    return numbagg.nanquantile(data(), [0.1, 0.5, 0.9], axis=1)

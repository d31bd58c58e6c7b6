"""Genomics: population statistics, relationships and distances, without the package's tables."""
import sys
import types

import numpy as np
from program_help import bare, random

bare("sgkit")
for name in ("sgkit.distance", "sgkit.stats"):
    bare(name)
typing = types.ModuleType("sgkit.typing")
typing.ArrayLike = typing.DType = typing.NumbaArray = object
sys.modules["sgkit.typing"] = typing
from sgkit.distance import metrics  # noqa: E402
from sgkit.stats import aggregation_numba_fns, popgen_numba_fns  # noqa: E402


def counts():
    return random().randint(0, 20, (11, 4, 3)).astype("i8")


def matrix(n=4):
    d = random().uniform(0, 1, (11, n, n))
    return (d + d.transpose(0, 2, 1)) / 2


def check_divergence():
    return popgen_numba_fns._divergence(counts())


def check_fst():
    return popgen_numba_fns._Fst_Hudson(matrix()), popgen_numba_fns._Fst_Nei(matrix())


def check_branch_statistics():
    return popgen_numba_fns._pbs(matrix()), popgen_numba_fns._pbs_cohorts(matrix(), np.array([[0, 1, 2], [1, 2, 3]], "i4"))


def check_hashes():
    return popgen_numba_fns.hash_array(random().randint(0, 4, (30, 9)).astype("i1"))


def check_calls():
    calls = random().randint(-1, 3, (11, 6, 2)).astype("i1")
    return aggregation_numba_fns.count_alleles(calls, np.zeros(3, "u1"))


def distances(name, dtype="f8"):
    x, y = random().uniform(0, 3, (2, 40)).astype(dtype)
    return getattr(metrics, name)(x, y, np.empty(metrics.N_MAP_PARAM[name.split("_")[0]]))


def check_distances_on_the_host():
    return distances("correlation_map_cpu"), distances("euclidean_map_cpu")


def check_euclidean_kernel():
    data = random().uniform(0, 3, (13, 40))
    out = np.zeros((13, 13, 1))
    metrics.euclidean_map_kernel[(1, 1), (16, 16)](data, data, out)
    return out


def check_correlation_kernel():
    data = random().uniform(0, 3, (13, 40))
    out = np.zeros((13, 13, 6))
    metrics.correlation_map_kernel[(1, 1), (16, 16)](data, data, out)
    return out

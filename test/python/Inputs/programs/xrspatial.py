"""Rasters: the package's own tests, and its kernels for a GPU."""
import sys

import numpy as np
from program_help import launched, plane

import xrspatial  # noqa: F401
from xrspatial import focal, multispectral

# Numba's simulator cannot run some of these kernels. They are compared with the package's functions for NumPy, which
# run in Python.
slope, aspect, curvature, classify, perlin, convolution = (sys.modules["xrspatial." + name] for name in "slope aspect curvature classify perlin convolution".split())

TESTS = ["xrspatial/tests"]
OPTIONS = ["-k", "not cupy and not gpu and not dask", "--ignore-glob=*test_datasets.py", "--ignore-glob=*test_utils.py"]


def empty():
    return np.full((23, 31), np.nan, "f4")


def check_slope():
    return launched(slope._run_gpu, (23, 31), plane(dtype="f4"), np.array([1.5], "f4"), np.array([2.0], "f4"), empty())[-1]


def check_aspect():
    return launched(aspect._run_gpu, (23, 31), plane(dtype="f4"), empty())[-1]


def check_curvature():
    return launched(curvature._run_gpu, (23, 31), plane(dtype="f4"), np.array([1.5], "f4"), empty())[-1]


def check_binary():
    data, values = np.floor(plane(dtype="f4")), np.array([3.0, 17.0, 40.0])
    data[3, 4], data[5, 6] = np.nan, np.inf
    found = launched(classify._run_gpu_binary, (23, 31), data, values, empty())[-1]
    np.testing.assert_array_equal(found, classify._cpu_binary.py_func(data, values))


def check_bins():
    data, bins, new = plane(dtype="f4"), np.array([10.0, 30.0, 60.0]), np.array([1.0, 2.0, 3.0])
    found = launched(classify._run_gpu_bin, (23, 31), data, bins, new, empty())[-1]
    np.testing.assert_array_equal(found, classify._cpu_bin.py_func(data, bins, new))


def check_mean():
    data = plane((32, 48), "f4")  # the kernel does not check bounds
    data[5, 5] = np.nan
    out = np.zeros((32, 48), "f4")
    focal._mean_gpu[(2, 3), (16, 16)](data, np.array([np.nan]), out)
    return out


def check_convolution():
    return launched(convolution._convolve_2d_cuda, (23, 31), plane(dtype="f4"), plane((3, 5), "f4"), empty())[-1]


def check_focal_statistics():
    kernel = (plane((3, 3)) > 40).astype("f8")  # the simulator rounds sums of float32 more often
    names = "_focal_min_cuda _focal_max_cuda _focal_std_cuda _focal_var_cuda".split()
    return [launched(getattr(focal, n), (23, 31), plane(), kernel, np.full((23, 31), np.nan))[-1] for n in names]


def check_hotspots():
    return launched(focal._run_gpu_hotspots, (23, 31), plane(dtype="f4") / 20 - 2.5, np.zeros((23, 31), "i1"))[-1]


def check_indices():
    a, b, c = (plane(dtype="f4", seed=s) for s in (1, 2, 3))
    return [launched(multispectral._arvi_gpu, (23, 31), a, b, c, empty())[-1],
            launched(multispectral._evi_gpu, (23, 31), a, b, c, 6.0, 7.5, 1.0, 2.5, empty())[-1],
            launched(multispectral._gci_gpu, (23, 31), a, b, empty())[-1],
            launched(multispectral._normalized_ratio_gpu, (23, 31), a, b, empty())[-1],
            launched(multispectral._savi_gpu, (23, 31), a, b, 0.5, empty())[-1],
            launched(multispectral._sipi_gpu, (23, 31), a, b, c, empty())[-1]]


def check_perlin():
    table = np.random.RandomState(5).permutation(256).astype("i4")
    return launched(perlin._perlin_gpu, (23, 31), np.append(table, table), 0.0, 1.0, 0.0, 1.0, 1.0, empty())[-1]

"""The matrix profile of a series on all GPUs, with a host thread for each GPU: for each window of m
values the distance to the most similar other window, both standardized. A numba.cuda program with
another import. Without GPUs, KJIT_CPU_DEVICES=2 in the environment creates two CPU devices."""
import math
import threading

from kjit import cuda

import numpy as np


@cuda.jit
def next_row(T, m, i, is_first, before, products, start_products, mean, deviation, zone, profile, places):
    """Computes the sliding products of window i with all windows from those of window i - 1, and
    updates the nearest windows."""
    start, stride = cuda.grid(1), cuda.gridsize(1)
    count = products.shape[0]
    for j in range(start, count, stride):
        if is_first:
            products[j] = start_products[j]
        elif j == 0:
            total = 0.0
            for k in range(m):
                total += T[i + k] * T[k]
            products[j] = total
        else:
            products[j] = before[j - 1] - T[i - 1] * T[j - 1] + T[i + m - 1] * T[j + m - 1]
        if abs(i - j) > zone:
            correlation = (products[j] - m * mean[i] * mean[j]) / (m * deviation[i] * deviation[j])
            distance = math.sqrt(max(0.0, 2 * m * (1 - correlation)))
            if distance < profile[j]:
                profile[j] = distance
                places[j] = i


def part_of_profile(gpu, T, m, rows, found):
    """Finds the nearest windows for some of the windows on one GPU; each host thread calls it for
    its GPU."""
    with gpu:
        windows = np.lib.stride_tricks.sliding_window_view(T, m)
        count = len(windows)
        d_T, d_mean, d_deviation = cuda.to_device(T), cuda.to_device(windows.mean(1)), cuda.to_device(windows.std(1))
        d_start = cuda.to_device(windows @ T[rows[0] : rows[0] + m])
        before, products = cuda.device_array(count), cuda.device_array(count)
        profile, places = cuda.to_device(np.full(count, np.inf)), cuda.to_device(np.full(count, -1))
        for i in rows:
            next_row[4, 64](d_T, m, i, i == rows[0], before, products, d_start, d_mean, d_deviation, -(-m // 4), profile, places)
            before, products = products, before
        found[gpu.id] = profile.copy_to_host(), places.copy_to_host()


def matrix_profile(T, m):
    found = {}
    parts = np.array_split(np.arange(len(T) - m + 1), len(cuda.gpus))
    threads = [threading.Thread(target=part_of_profile, args=(gpu, T, m, part, found)) for gpu, part in zip(cuda.gpus, parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiles, places = (np.array(values) for values in zip(*(found[gpu.id] for gpu in cuda.gpus)))
    nearest = profiles.argmin(0)[None]
    return np.take_along_axis(profiles, nearest, 0)[0], np.take_along_axis(places, nearest, 0)[0]


def expected_profile(T, m):
    windows = np.lib.stride_tricks.sliding_window_view(T, m)
    windows = (windows - windows.mean(1, keepdims=True)) / windows.std(1, keepdims=True)
    distances = np.linalg.norm(windows[:, None] - windows, axis=2)
    i = np.arange(len(windows))
    distances[abs(i[:, None] - i) <= -(-m // 4)] = np.inf
    return distances.min(0), distances.argmin(0)


random = np.random.default_rng()
T, m = random.standard_normal(400).cumsum(), 25
T[300 : 300 + m] = T[60 : 60 + m] + 0.01 * random.standard_normal(m)  # the same shape at two positions
profile, places = matrix_profile(T, m)
expected, expected_places = expected_profile(T, m)
np.testing.assert_allclose(profile, expected, rtol=1e-5, atol=1e-5)
assert places[300] == expected_places[300] == 60 and places[60] == 300
print(f"the matrix profile of {len(T)} values on {len(cuda.gpus)} device(s): windows 60 and 300 are {profile[60]:.3f} apart, as in NumPy")

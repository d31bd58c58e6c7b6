"""Nearest neighbours: distances, and the search itself."""
import numpy as np
from program_help import random

import pynndescent
from pynndescent import distances


def pair(seed=1, n=24):
    x, y = random(seed).uniform(0.1, 5, (2, n)).astype("f4")
    return x, y


def of(names, x, y):
    return [np.float64(getattr(distances, n)(x, y)) for n in names.split()]


def check_distances():
    return of("euclidean squared_euclidean manhattan chebyshev canberra bray_curtis cosine alternative_cosine dot true_angular correlation "
              "hellinger", *pair())


def check_distances_of_truth():
    x, y = ((v > 2).astype("f4") for v in pair())
    return of("hamming jaccard alternative_jaccard matching dice kulsinski rogers_tanimoto russellrao sokal_michener sokal_sneath yule", x, y)


def check_minkowski():
    x, y = pair()
    return np.float64(distances.minkowski(x, y, 3)), np.float64(distances.weighted_minkowski(x, y, np.ones(24, "f4"), 3))


def check_mahalanobis():
    x, y = pair()
    return np.float64(distances.mahalanobis(x, y, np.eye(24, dtype="f8")))


def check_haversine():
    x, y = pair(n=2)
    return np.float64(distances.haversine(x / 5, y / 5))


def check_ranks():
    x, y = pair()
    return np.float64(distances.spearmanr(x, y))


def check_divergences():
    x, y = pair()
    return of("jensen_shannon_divergence symmetric_kl_divergence wasserstein_1d circular_kantorovich", x, y)


def check_bits():
    x, y = random().randint(0, 256, (2, 16)).astype("u1")
    return of("bit_hamming bit_jaccard", x, y)


def check_search():
    data = random().uniform(0, 1, (200, 6)).astype("f4")
    found, distance = pynndescent.NNDescent(data, n_neighbors=5, random_state=1).neighbor_graph
    return np.sort(distance, axis=1)

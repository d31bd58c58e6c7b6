"""Searches in meshes: points, boxes and lines in a tree of cells, whose functions take named tuples."""
import numpy as np
from program_help import random

from numba_celltree import CellTree2d


def tree():
    n = 6
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.stack([corner, corner + 1, corner + n + 1, corner + n], axis=1)
    return CellTree2d(np.stack([x.ravel(), y.ravel()], axis=1), faces, -1)


def check_build():
    return tree().celltree_data.bb_indices


def check_points():
    return tree().locate_points(random().uniform(-0.1, 1.1, (50, 2)))


def check_boxes():
    low = random().uniform(0, 0.7, (9, 2))
    boxes = np.stack([low[:, 0], low[:, 0] + 0.2, low[:, 1], low[:, 1] + 0.2], axis=1)
    return tree().locate_boxes(boxes)


def check_edges():
    return tree().intersect_edges(random().uniform(0, 1, (9, 2, 2)))


def check_weights():
    return tree().compute_barycentric_weights(random().uniform(0, 1, (20, 2)))

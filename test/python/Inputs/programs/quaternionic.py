"""Rotations: arithmetic on arrays of quaternions, with ufuncs that guvectorize creates."""
import numpy as np
from program_help import random

import quaternionic


def numbers(seed=1):
    return quaternionic.array(random(seed).uniform(-1, 1, (9, 4)))


def check_arithmetic():
    a, b = numbers(), numbers(2)
    return [np.asarray(v.ndarray) for v in (a * b, a + b, a / b, a - b, a * 2.0, 2.0 / a, -a, a.conjugate())]


def check_functions():
    a = numbers()
    return [np.asarray(v.ndarray) for v in (np.exp(a), np.log(a), np.sqrt(a), np.square(a), a.inverse, a.normalized)]


def check_norms():
    a = numbers()
    return np.asarray(a.norm), np.asarray(np.abs(a))


def check_rotations():
    return numbers().rotate(random(3).uniform(-1, 1, (5, 3)))


def check_matrices():
    return np.asarray(numbers().to_rotation_matrix)


def check_interpolation():
    a = numbers()
    return np.asarray(quaternionic.slerp(a, numbers(2), np.linspace(0, 1, 9)).ndarray)

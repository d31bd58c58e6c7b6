"""Light that spheres scatter: series of Bessel functions with complex arguments."""
import numpy as np

import os

os.environ["MIEPYTHON_USE_JIT"] = "1"
import miepython  # noqa: E402


def check_efficiencies():
    return [np.array(miepython.efficiencies_mx(m, x)) for m, x in ((1.5, 2.0), (1.33 - 0.01j, 10.0), (2.0 - 1j, 0.05), (0.75, 30.0))]


def check_many_sizes():
    return [np.asarray(v) for v in miepython.efficiencies_mx(1.5 - 0.1j, np.linspace(0.1, 20, 15))]


def check_amplitudes():
    return [np.asarray(v) for v in miepython.S1_S2(1.5 - 0.5j, 4.0, np.linspace(-1, 1, 11))]


def check_phase():
    return np.asarray(miepython.i_unpolarized(1.5, 4.0, np.linspace(-1, 1, 11)))


def check_coefficients():
    return [np.asarray(v) for v in miepython.coefficients(1.5 - 0.1j, 5.0)]

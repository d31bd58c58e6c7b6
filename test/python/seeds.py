"""Draws the random inputs of the Python tests. Each run has a new seed. The module prints the seed, so that the output of a failed test
shows it, and KJIT_TEST_SEED=N repeats the run."""
import os
import random
import secrets
import sys

import numpy as np

seed = int(os.environ.get("KJIT_TEST_SEED") or secrets.randbits(32))
print(f"seed: KJIT_TEST_SEED={seed} repeats the run", file=sys.stderr, flush=True)
_sequence = np.random.SeedSequence(seed)


def fresh_generator():
    """Returns a generator of NumPy. It depends on the seed and on the number of earlier calls."""
    return np.random.default_rng(_sequence.spawn(1)[0])


def fresh_choice():
    """Returns a random.Random, which depends on the seed as well."""
    return random.Random(int(fresh_generator().integers(2**63)))

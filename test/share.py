"""The share of the rows or cases of a test that this run takes: KJIT_TEST_SHARE=K/N/SEED, from lit's --param share.
Without it, the run takes all of them."""
import os
import zlib

import numpy as np


def given_share():
    """Returns (K, N, SEED), or None."""
    given = os.environ.get("KJIT_TEST_SHARE")
    return tuple(map(int, given.split("/"))) if given else None


def share_of(items, *names):
    """Returns part K of the N parts into which SEED divides the items at random. Other names give another division.
    There is at least one item."""
    given = given_share()
    if not given or not items:
        return items
    part, parts, seed = given
    order = np.random.default_rng([seed, zlib.crc32(" ".join(names).encode())]).permutation(len(items)).tolist()
    chosen = sorted(order[part::parts] or order[:1])
    return [items[i] for i in chosen]


def share_of_numbers(first, count):
    """(first, count) of the share of so many numbers from `first` on: neighbours, where what a number stands for takes turns."""
    given = given_share()
    if not given:
        return first, count
    part, parts, seed = given
    at = (part + seed) % parts
    start, end = at * count // parts, (at + 1) * count // parts
    return first + min(start, count - 1), max(end - start, 1)

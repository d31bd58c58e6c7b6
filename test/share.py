"""The share of the rows or cases of a test that this run takes: KJIT_TEST_SHARE=K/N/SEED, from lit's --param share. Without one, all of them."""
import os
import zlib

import numpy as np


def share_of(items, *names):
    """Part K of the N that SEED divides the items into at random, another division for other names; at least one item."""
    given = os.environ.get("KJIT_TEST_SHARE")
    if not given or not items:
        return items
    part, parts, seed = map(int, given.split("/"))
    order = np.random.default_rng([seed, zlib.crc32(" ".join(names).encode())]).permutation(len(items)).tolist()
    chosen = sorted(order[part::parts] or order[:1])
    return [items[i] for i in chosen]

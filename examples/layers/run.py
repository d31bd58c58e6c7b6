#!/usr/bin/env python3
"""Matrix products with further steps: the column sums of a product, contracted in an order that stores no matrix (`--call 'sums =
einsum("ij,jk->k", a, b)'`); a layer of a network, whose bias and activation are applied as the product is stored; and alpha * a @
b + beta * c in place. --rows, --terms and --columns set the extents of the matrices; --full means 10000 x 5000 x 7000."""
import math
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from program import Program, beside

ALPHA, BETA = 0.75, -1.5


def add_options(parser):
    for name, default in (("rows", 131), ("terms", 70), ("columns", 93)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--full", action="store_true", help="10000 x 5000 x 7000")


def gelu(x):
    return x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def main():
    p = Program(beside(__file__, "layers.kir"), __doc__, add_options)
    o = p.options
    m, n, k = (10000, 5000, 7000) if o.full else (o.rows, o.terms, o.columns)
    a = p.array("a", p.rng.standard_normal((m, n)).astype("f4"))
    b = p.array("b", (p.rng.standard_normal((n, k)) / math.sqrt(n)).astype("f4"))
    bias = p.array("bias", p.rng.standard_normal(k).astype("f4"))
    c = p.array("c", p.rng.standard_normal((m, k)).astype("f4"))
    p.value("layer", f"zeros:f32[{m},{k}]")
    p.call('sums = einsum("ij,jk->k", a, b)')
    p.call(f"activate(bias, layer)[{m}, {k}] = matmul(a, b)")
    p.call(f"accumulate({ALPHA}f32, {BETA}f32, c)[{m}, {k}] = matmul(a, b)")
    wide = a.astype("f8")
    p.expect("sums", wide.sum(0) @ b.astype("f8"))
    product = wide @ b.astype("f8")
    p.expect("layer", gelu(product + bias))
    p.expect("c", ALPHA * product + BETA * c.astype("f8"))
    # Returns the error bound for a sum of n rounded products of about 1 / sqrt(n). A column sum has m times as many products.
    return p.run(rtol=1e-5, atol=1e-6 * math.sqrt(m * n))


sys.exit(main())

"""bodies.py FOLDER: writes a.npy, the input of bodies.kir; b.npy, the result of `move` with 0.1; and files that differ
from b.npy a little, much, and only in the padding."""
import sys

import numpy as np

vec = np.dtype([("x", "f4"), ("y", "f4")], align=True)
body = np.dtype([("id", "u1"), ("pos", vec), ("history", "f8", (2,)), ("count", "i4")], align=True)


def save(name, bodies):
    np.save(f"{sys.argv[1]}/{name}.npy", bodies)


a = np.zeros(3, body)
a["pos"]["x"] = [1, 2, 3]
a["id"] = [7, 8, 9]
save("a", a)
a["pos"]["x"] += 0.1
a["history"][:, 1] = 2
a["count"] += 1
save("b", a)
padded = a.copy()
padded.view("u1").reshape(3, -1)[:, 1] = 99
save("padded", padded)
a["pos"]["x"] *= 1.001
save("near", a)
a["count"][2] = 5
save("far", a)
save("vectors", np.zeros(3, vec))

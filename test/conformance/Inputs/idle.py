import numpy as np
from rows import row


@row("starts with what is expected")
def _(r, rng):
    result = np.zeros(8)
    r.array("out", result)
    r.launch("nothing", "1, 8", "out")
    r.expect("out", np.zeros(8))


@row("a check that cannot fail")
def _(r, rng):
    r.array("out", np.zeros(8))
    r.launch("nothing", "1, 8", "out")
    r.verify(["out"], lambda out: None)


@row("changes what is said to be unchanged")
def _(r, rng):
    r.array("out", np.ones(8))
    r.launch("double", "1, 8", "out")
    r.expect("out", np.full(8, 2.0), unchanged=True)


@row("the array that a row goes on to fill is not the kernel's")
def _(r, rng):
    result = np.zeros(8)
    r.array("out", result)
    r.launch("nothing", "1, 8", "out")
    result[:] = 5
    r.expect("out", result)


@row("is left alone")
def _(r, rng):
    r.array("out", np.ones(8))
    r.launch("nothing", "1, 8", "out")
    r.expect("out", np.ones(8), unchanged=True)


DRAWN = []


@row("is drawn again")
def _(r, rng):
    DRAWN.append(rng.random())
    assert len(set(DRAWN)) == len(DRAWN), "each draw has random numbers of its own"
    r.array("out", np.full(8, 0.0 if len(DRAWN) == 1 else 3.0))
    r.launch("double", "1, 8", "out")
    r.expect("out", np.full(8, 0.0 if len(DRAWN) == 1 else 6.0))

"""The table of kinds of hostile kernels. A module adds rows with @kind; generate.py draws from them.

A kind is a function of a random.Random that returns a Kernel, another one each time. Its row says with which statuses such kernels may end (names of status.def without ERROR_), and in which
contexts of hostile.c they run."""
import random

SAFE = ("usual", "all_checks", "unchecked", "guest", "debug")  # harmless without checks, too
# without the usual checks, the kernel would access host memory out of bounds
CHECKED = ("usual", "all_checks", "guest", "debug")
REFUSED = ("MISUSE", "SYNTAX", "TYPE", "NAME", "ARGUMENT", "UNSUPPORTED", "COMPILE", "LIMIT", "LAUNCH", "MEMORY")  # what never runs
ANY = REFUSED + ("OK", "KERNEL", "INTERRUPTED", "DEVICE_MEMORY")

KINDS = {}


class Kernel:
    """The text or bytes of a module, the sources that it imports by name, and its launch. Each letter of `arguments`
    stands for one argument; hostile.c has a table of the letters."""

    def __init__(self, text, imports=(), entry="k", grid=(1, 1, 1), block=(1, 1, 1), shared_bytes=0, is_cooperative=False, arguments="rxn"):
        self.text, self.imports, self.entry = text, list(imports), entry
        self.grid, self.block, self.shared_bytes, self.is_cooperative, self.arguments = grid, block, shared_bytes, is_cooperative, arguments


class Kind:
    def __init__(self, family, make, statuses, contexts, targets):
        self.family, self.make, self.statuses, self.contexts, self.targets = family, make, statuses, contexts, targets


def kind(family, statuses=ANY, contexts=SAFE, targets=("cpu", "cuda")):
    def add(make):
        name = family + "." + make.__name__
        assert name not in KINDS, name
        KINDS[name] = Kind(family, make, statuses, contexts, targets)
        return make
    return add


def give_rule(rng, name, kernel):
    """For a kind that is checked and can end with any status, every second kernel uses Numba's types, which may cause
    an error."""
    row = KINDS[name]
    if row.statuses is ANY and row.contexts is CHECKED and isinstance(kernel.text, str) and rng.random() < 0.5:
        kernel.text = "default @numba\n" + kernel.text


def record(number, name, kernel):
    """Returns a kernel in the format that hostile.c reads: a line of words, then each source with its size in bytes."""
    row = KINDS[name]
    words = [number, name, "|".join(row.statuses), "|".join(row.contexts), 1 + len(kernel.imports), kernel.entry, *kernel.grid, *kernel.block, kernel.shared_bytes, int(kernel.is_cooperative), kernel.arguments or "-"]
    parts = [("kernel " + " ".join(map(str, words)) + "\n").encode()]
    for source, text in [("hostile.kir", kernel.text), *kernel.imports]:
        data = text if isinstance(text, bytes) else text.encode()
        parts += [("source %s %d\n" % (source, len(data))).encode(), data, b"\n"]
    return b"".join(parts)


# ---- building blocks of the kinds ----

def shape(rng):
    """Returns a launch with a few blocks."""
    return {"grid": rng.choice([(1, 1, 1), (2, 1, 1), (3, 2, 1), (2, 2, 2)]), "block": rng.choice([(1, 1, 1), (32, 1, 1), (64, 1, 1), (8, 4, 2), (96, 1, 1)])}


def size(rng, least, most):
    """Returns a number whose logarithm is uniform."""
    return int(round(least * (most / least) ** rng.random()))


def somewhere(rng, body, functions=""):
    """Returns a kernel k(r, x, n) that reaches a statement on one of several paths."""
    ways = [
        "kernel k(r, x, n) { %s }",
        "kernel k(r, x, n) { x[0] = 2\n %s\n r[1] = 3 }",
        "func w(r, x, n) { %s }\nkernel k(r, x, n) { w(r, x, n) }",
        "func w(r, x, n) @noinline { %s }\nkernel k(r, x, n) { w(r, x, n) }",
        "func w(r, x, n) @inline { %s }\nkernel k(r, x, n) { w(r, x, n) }",
        "kernel k(r, x, n) { if n > 5 { %s } else { r[2] = 1 } }",
        "kernel k(r, x, n) { for _outer in range(n) { %s } }",
        "kernel k(r, x, n) { if threadIdx.x == 0 { %s } }",
        "kernel k(r, x, n) { if blockIdx.x == 0 { %s }\n r[0] = 1 }",
        "kernel k(r, x, n) { for _outer in grid_range(len(r)) { %s } }",
    ]
    return functions + "\n" + rng.choice(ways) % body


def rng_of(seed, name, index):
    return random.Random("%s %s %s" % (seed, name, index))

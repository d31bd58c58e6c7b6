"""The table of kinds of hostile kernels. A module adds rows with @kind; generate.py draws from them.

A kind is a function of a random.Random that returns a Kernel, another one each time. Its row says with which statuses such kernels may end (names of status.def without ERROR_), and in which
contexts of hostile.c they run."""
import random

SAFE = ("usual", "all_checks", "unchecked", "guest", "debug")  # harmless without checks, too
CHECKED = ("usual", "all_checks", "guest", "debug")  # what the usual checks find would touch memory of the host
REFUSED = ("MISUSE", "SYNTAX", "TYPE", "NAME", "ARGUMENT", "UNSUPPORTED", "COMPILE", "LIMIT", "LAUNCH", "MEMORY")  # what never runs
ANY = REFUSED + ("OK", "KERNEL", "INTERRUPTED", "DEVICE_MEMORY")

KINDS = {}


class Kernel:
    """A module's text, or bytes, the sources that it imports by their names, and how it is launched. Each letter of `arguments` is one; hostile.c has a table of them."""

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
    """Every other kernel of a kind that is checked and may end in any way has the types of Numba, which may make an error of it."""
    row = KINDS[name]
    if row.statuses is ANY and row.contexts is CHECKED and isinstance(kernel.text, str) and rng.random() < 0.5:
        kernel.text = "default @numba\n" + kernel.text


def record(number, name, kernel):
    """A kernel as hostile.c reads it: a line of words, then each source with its size in bytes."""
    row = KINDS[name]
    words = [number, name, "|".join(row.statuses), "|".join(row.contexts), 1 + len(kernel.imports), kernel.entry, *kernel.grid, *kernel.block, kernel.shared_bytes, int(kernel.is_cooperative), kernel.arguments or "-"]
    parts = [("kernel " + " ".join(map(str, words)) + "\n").encode()]
    for source, text in [("hostile.kir", kernel.text), *kernel.imports]:
        data = text if isinstance(text, bytes) else text.encode()
        parts += [("source %s %d\n" % (source, len(data))).encode(), data, b"\n"]
    return b"".join(parts)


# ---- what kinds are made of ----

def shape(rng):
    """A launch of a few blocks."""
    return {"grid": rng.choice([(1, 1, 1), (2, 1, 1), (3, 2, 1), (2, 2, 2)]), "block": rng.choice([(1, 1, 1), (32, 1, 1), (64, 1, 1), (8, 4, 2), (96, 1, 1)])}


def size(rng, least, most):
    """A number whose logarithm is uniform."""
    return int(round(least * (most / least) ** rng.random()))


def somewhere(rng, body, functions=""):
    """A kernel k(r, x, n) that comes to a statement by one of several ways."""
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

"""Matrix products, and Einstein sums of random expressions, in all kinds of layouts."""
import numpy as np

from cases import Case, cases, some_cases
from product_data import EPSILON, SUMS, draw, expect_kind, lay_out, of_kind, to_kind

LETTERS = "abcdeXYZ"
KINDS = ["bf16", "f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def expect(case, expression, operands, kind, factors):
    """Returns the maximum error: the error that this number of additions and roundings can have in the sum of absolute
    values."""
    if kind[0] in "iu":
        wide = [x.astype("u8" if kind[0] == "u" else "i8") for x in operands]
        return case.expect("r", np.einsum(expression, *wide).astype(kind))
    wide = [x.astype("c16" if kind[0] == "c" else "f8") for x in operands]
    value, size = np.einsum(expression, *wide), np.einsum(expression, *[np.abs(x) for x in wide])
    atol = float(np.max(size, initial=0)) * (factors * SUMS[kind] + EPSILON[kind] / 2)
    return expect_kind(of_kind(case, kind), value, kind, atol=atol)


def random_expression(rng):
    """Returns the letters of each operand, the extents, and the letters of the result or None."""
    extents = {letter: int(rng.choice([0, 1, 2, 3, 4, 5], p=[0.04, 0.16, 0.2, 0.2, 0.2, 0.2])) for letter in LETTERS}
    terms = ["".join(rng.choice(list(LETTERS[:5 if count > 2 else 8]), rng.integers(0, 4))) for count in [int(rng.integers(1, 6))] for _ in range(count)]
    used = sorted(set("".join(terms)))
    result = "".join(rng.permutation([letter for letter in used if rng.random() < 0.4])) if rng.random() < 0.8 else None
    return terms, extents, result


@some_cases(60)
def expressions(rng):
    made = 0
    while made < 90:
        terms, extents, result = random_expression(rng)
        kind = str(rng.choice(KINDS))
        dots = int(rng.integers(0, 3)) if rng.random() < 0.3 else None
        shapes = []
        for term in terms:
            own = {letter: 1 if rng.random() < 0.15 else extents[letter] for letter in term}
            shapes.append([own[letter] for letter in term])
        texts = list(terms)
        if dots is not None:
            ahead = [int(n) for n in rng.integers(1, 4, 2)]
            for i in range(len(terms)):
                rank = int(rng.integers(0, dots + 1))
                shapes[i] = [1 if rng.random() < 0.3 else n for n in ahead[2 - rank:]] + shapes[i]
                texts[i] = "..." + terms[i]
        expression = ",".join(texts) + ("" if result is None else "->" + ("..." if dots is not None else "") + result)
        operands = {f"x{i}": draw(rng, shape, kind) for i, shape in enumerate(shapes)}
        length = int(np.prod([max(n, 1) for n in extents.values()]))
        case = Case(f"einsum {expression} {shapes} {kind}", "{r} = einsum(\"%s\", %s)" % (expression, ", ".join("{%s}" % name for name in operands)), **operands)
        made += 1
        yield expect(case, expression, list(operands.values()), kind, length + 8)


@some_cases(40)
def vectors(rng):
    """Products of a matrix and a vector on either side, with sizes around the lengths of partial sums and the number of sums
    that are computed at a time."""
    for kind in KINDS:
        for many, k in [(700, 127), (64, 128), (31, 129), (65, 300), (511, 64), (513, 65), (4, 5000), (1030, 7), (1, 4200)]:
            batch = [] if rng.random() < 0.6 else [int(rng.integers(1, 4))]
            x, y = draw(rng, [*batch, many, k], kind), draw(rng, [*batch, k, 1], kind)
            yield expect(Case(f"matmul {x.shape} {y.shape} {kind}", "{r} = matmul({x}, {y})", x=x, y=y), "...ij,...jk->...ik", [x, y], kind, k + 2)
            x, y = draw(rng, [*batch, 1, k], kind), draw(rng, [*batch, k, many], kind)
            yield expect(Case(f"matmul {x.shape} {y.shape} {kind}", "{r} = matmul({x}, {y})", x=x, y=y), "...ij,...jk->...ik", [x, y], kind, k + 2)


@some_cases(40)
def matrices(rng):
    for kind in KINDS:
        for m, n, k in [(1, 1, 1), (4, 16, 7), (3, 15, 4), (5, 17, 0), (0, 3, 2), (33, 31, 65), (8, 48, 100)]:
            for batches in [((), ()), ((3,), (3,)), ((2, 1), (3,))]:
                x, y = draw(rng, [*batches[0], m, k], kind), draw(rng, [*batches[1], k, n], kind)
                yield expect(Case(f"matmul {x.shape} {y.shape} {kind}", "{r} = matmul({x}, {y})", x=x, y=y), "...ij,...jk->...ik", [x, y], kind, k + 2)


# On the CPU, 14, 12, 6 or 5 rows and 4 to 32 columns of sums are in registers, a tile has up to 192 rows and columns, and 256 terms are added at a time. On a
# GPU, the sizes of tiles are powers of two.
ROWS = [1, 5, 6, 7, 12, 13, 14, 15, 29, 64, 127, 129, 181, 183, 191, 193, 260]
COLUMNS = [1, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 96, 97, 128, 192, 193, 257]
TERMS = [1, 2, 31, 33, 64, 255, 256, 257, 512, 513, 600]


@some_cases(40)
def tile_borders(rng):
    """Sizes around the borders of tiles, in every type."""
    for kind in KINDS:
        for batch in ((), (), (), (2,)):
            m, n, k = (int(rng.choice(sizes)) for sizes in (ROWS, COLUMNS, TERMS))
            x, y = draw(rng, [*batch, m, k], kind), draw(rng, [*batch, k, n], kind)
            yield expect(Case(f"borders {x.shape} {y.shape} {kind}", "{r} = matmul({x}, {y})", x=x, y=y), "...ij,...jk->...ik", [x, y], kind, k + 2)


@some_cases(12)
def small_tiles(rng):
    """The same for sizes that are fast enough with all checks."""
    for kind in KINDS:
        for m, n, k in ((15, 33, 70), (29, 17, 100), (6, 9, 300), (14, 32, 64), (65, 5, 40)):
            x, y = draw(rng, [m, k], kind), draw(rng, [k, n], kind)
            yield expect(Case(f"small tiles {x.shape} {y.shape} {kind}", "{r} = matmul({x}, {y})", x=x, y=y), "ij,jk->ik", [x, y], kind, k + 2)


@cases
def steps(rng):
    """Every second element, reversed operands, transposed results, and groups of letters that are not a single axis."""
    wide = rng.standard_normal((70, 530))
    x, y = wide[::-2, ::2], rng.standard_normal((265, 40))
    case = Case("steps", "{r} = matmul({x}[::-2, ::2], {y})", x=wide, y=y)
    yield case.expect("r", x @ y, atol=1e-11)
    a, b = rng.standard_normal((9, 20, 3, 11)), rng.standard_normal((11, 7, 20, 5))
    for result in ("acek", "keac", "ecka"):
        yield expect(Case(f"groups {result}", "{r} = einsum(\"abcd,dkbe->%s\", {a}, {b})" % result, a=a, b=b), f"abcd,dkbe->{result}", [a, b], "f8", 230)
    x, y = rng.integers(-3, 4, (37, 300)).astype("f4"), rng.integers(-3, 4, (300, 45)).astype("f4")
    case = Case("bf16", "{r} = matmul({x}, {y})").array("x", x, "bf16").array("y", y, "bf16")
    yield case.expect("r", x @ y, rtol=2.0**-8, kind="bf16")
    x, y = (rng.standard_normal(shape) for shape in [(40, 600), (600, 50)])
    case = Case("once", "gathered({r})[40, 50] = matmul({x}, {y})", x=x, y=y, r=np.ones((40, 50)))
    yield case.expect("r", 1 + x @ y, atol=1e-10)


@some_cases(10)
def tiles(rng):
    """Sizes around the borders of tiles, in layouts that tensor copies support and in other layouts."""
    for m, n, k in [(128, 256, 64), (136, 72, 200), (64, 64, 1000), (257, 129, 131), (200, 16, 72), (24, 333, 500), (601, 530, 77)]:
        for kind in ["bf16", "f2", "f4", "f8", "i4", "c8"]:
            for batches in [[], [3]]:
                scale = 30 if kind[0] == "i" else 1
                x, y = (lay_out(rng, to_kind(rng.standard_normal([*batches, *shape]) * scale, kind), kind) for shape in ((m, k), (k, n)))
                case = Case(f"tiles {x.shape} {x.strides} {y.shape} {y.strides} {kind}", "{r} = matmul({x}, {y})", x=x, y=y)
                yield expect(case, "...ij,...jk->...ik", [x, y], kind, k + 2)


@some_cases(4)
def rounded(rng):
    """Rounds both operands to 11 bits, then sums as f32."""
    for m, n, k in [(128, 64, 96), (130, 70, 33), (3, 200, 500), (300, 300, 40), (515, 600, 33), (640, 512, 64)]:
        x, y = (lay_out(rng, rng.standard_normal(shape), "f4") for shape in ((m, k), (k, n)))
        size = np.abs(x.astype("f8")) @ np.abs(y.astype("f8"))
        case = Case(f"tf32 {x.shape} {y.shape}", "{r} = matmul({x}, {y}, tf32=true)", x=x, y=y)
        yield case.expect("r", (x.astype("f8") @ y.astype("f8")).astype("f4"), atol=float(size.max()) * (2.0**-10 + (k + 2) * SUMS["f4"]))


@some_cases(2)
def deep(rng):
    """Sums so long that operands are packed for tensor copies although their elements are used only a few times. Rows start at
    any address."""
    for m, n, k in [(67, 311, 2501), (311, 67, 2503), (50, 1001, 1009)]:
        for kind, option in (("bf16", ""), ("f2", ""), ("f4", ", tf32=true")):
            x, y = (to_kind(rng.standard_normal(shape), kind) for shape in ((m, k), (k, n)))
            size = float((np.abs(x.astype("f8")) @ np.abs(y.astype("f8"))).max())
            case = of_kind(Case(f"deep {m} x {k} x {n} {kind}", "{r} = matmul({x}, {y}%s)" % option, x=x, y=y), kind)
            factors = 2.0**-10 if option else 0  # both operands are rounded to 11 bits
            yield expect_kind(case, x.astype("f8") @ y.astype("f8"), kind, atol=size * (factors + (k + 2) * SUMS[kind]), rtol=EPSILON[kind])


@cases
def rows_and_columns(rng):
    x, y, b = draw(rng, [37], "f8"), draw(rng, [2, 37, 20], "f8"), draw(rng, [20], "f8")
    yield expect(Case("row", "{r} = matmul({x}, {y})", x=x, y=y), "j,ajk->ak", [x, y], "f8", 40)
    yield expect(Case("column", "{r} = matmul({y}, {b})", y=y, b=b), "ajk,k->aj", [y, b], "f8", 40)
    yield expect(Case("inner", "{r} = matmul({x}, {y})", x=x, y=x[::-1]), "j,j->", [x, x[::-1]], "f8", 40)


@cases
def paths(rng):
    """Chains of products for which most orders would be too slow, with funcs as the result and as an operand."""
    x = [rng.standard_normal(shape) for shape in [(300, 200), (200, 400), (400,)]]
    yield expect(Case("chain", "{r} = einsum(\"ij,jk,k->i\", {x}, {y}, {z})", x=x[0], y=x[1], z=x[2]), "ij,jk,k->i", x, "f8", 700)
    # intermediate sums are not rounded to the operands' type
    x, y = np.ones((3001, 64, 64), "f2"), np.ones((64, 64), "f2")
    yield Case("sums of three axes", "{r} = einsum(\"aij,jk->ik\", {x}, {y})", x=x, y=y, r=np.zeros((64, 64), "f4")).expect("r", np.full((64, 64), 192064, "f4"))
    x = [np.ones((64, 3001), "f2"), np.ones((3001, 64), "f2"), np.ones((64, 64), "f2")]
    yield Case("chain of f16", "{r} = einsum(\"ij,jk,kl->il\", {x}, {y}, {z})", x=x[0], y=x[1], z=x[2], r=np.zeros((64, 64), "f4")).expect("r", np.full((64, 64), 192064, "f4"))
    x, y = rng.integers(-3, 4, (1, 130, 72)).astype("f2"), rng.integers(-3, 4, (1, 72, 264)).astype("f2")
    yield Case("a batch of one", "{r} = matmul({x}, {y})", x=x, y=y).expect("r", x @ y)
    x, y, b, s = (rng.standard_normal(shape) for shape in [(21, 30), (30, 18), 18, 30])
    case = Case("funcs", "biased({r}, {b})[21, 18] = matmul(scaled({x}, {s})[21, 30], {y})", x=x, y=y, b=b, s=s, r=np.zeros((21, 18)))
    yield case.expect("r", np.maximum(x * s @ y + b, 0), atol=1e-11)


# Rows, sums and columns for which a GPU chooses each kind of tile, warps, threads, and sums in parts.

"""Products with an epilogue func, and 8-bit products."""
import numpy as np

import small_floats
from cases import Case, cases, some_cases
from product_data import EPSILON, SUMS, draw, expect_kind, lay_out, of_kind, to_kind

ENDS = [(5, 9, 7), (128, 96, 64), (65, 600, 33), (40, 3000, 24), (3, 700, 50), (2, 5000, 2), (70, 600, 1), (300, 64, 260), (0, 4, 3), (6, 0, 5)]


def sums_of(expression, operands, kind, factors):
    """Returns the sums, and the maximum error of each sum."""
    wide = [x.astype("c16" if kind[0] == "c" else "f8") for x in operands]
    size = np.einsum(expression, *[np.abs(x) for x in wide])
    return np.einsum(expression, *wide), float(np.max(size, initial=0)) * factors * SUMS[kind]


def settle(case, value, error, kind, factors):
    """Applies the epilogue, which computes with as many bits as the sums have."""
    largest = float(np.max(np.abs(value), initial=0))
    return expect_kind(of_kind(case, factors), value, kind, atol=error + 4 * largest * SUMS[factors] + largest * EPSILON.get(kind, 0))


def wide_kind(kind):
    """Of the sums."""
    return "f4" if kind in ("f2", "bf16") else kind


@some_cases(40)
def epilogues(rng):
    """The epilogue's arguments for each result element: operands that broadcast, values, computed operands, and the result
    itself."""
    for kind in ("bf16", "f2", "f4", "f8", "c8", "c16"):
        for m, k, n in ENDS:
            batch = [int(rng.integers(1, 4))] if rng.random() < 0.3 else []
            x, y = (lay_out(rng, to_kind(rng.standard_normal([*batch, *shape]), kind), kind) for shape in ((m, k), (k, n)))
            title = f"{batch} {m} x {k} x {n} {kind}"
            sums, error = sums_of("...ij,...jk->...ik", [x, y], kind, k + 2)
            old = draw(rng, sums.shape, kind)
            case = Case(f"blended {title}", "{r} = matmul({x}, {y}, epilogue=blended({r}, 2.5, -0.5))", x=x, y=y, r=old)
            yield settle(case, 2.5 * sums - 0.5 * old, 2.5 * error, kind, kind)
            if kind[0] == "c":
                continue
            b = draw(rng, [[n], [m, 1], [1, n], [], [1]][rng.integers(0, 5)], kind)
            case = Case(f"rectified {title} {b.shape}", "{r} = matmul({x}, {y}, epilogue=rectified({b}))", x=x, y=y, b=b)
            yield settle(case, np.maximum(sums + b, 0), error, wide_kind(kind), kind)
            gate, row = draw(rng, [m, n], kind), draw(rng, [m, 1], kind)
            of_cells = draw(rng, [max(m, n)], kind)
            want = sums * gate + to_kind(row - to_kind(of_cells[:n] - of_cells[:m, None], kind), kind)  # the differences have the operands' type
            case = Case(f"gated {title}", "{r} = einsum(\"...ij,...jk->...ik\", {x}, {y}, epilogue=gated({g}, {b}, cell({z})[%d, %d]))" % (m, n), x=x, y=y, g=gate, b=row, z=of_cells)
            yield settle(case, want, error * float(np.max(np.abs(gate), initial=1)), wide_kind(kind), kind)


@some_cases(12)
def integer_epilogues(rng):
    for kind in ("i1", "u1", "i2", "i4", "i8"):
        for m, k, n in ENDS:
            x, y = (lay_out(rng, rng.integers(0 if kind[0] == "u" else -9, 10, shape).astype(kind), kind) for shape in ((m, k), (k, n)))
            b = rng.integers(-100, 101, [m, 1]).astype("i8")
            want = np.clip(x.astype("i8") @ y.astype("i8") + b, -100, 100).astype("i1")
            case = Case(f"clipped {m} x {k} x {n} {kind}", "{r} = matmul({x}, {y}, epilogue=clipped({b}))", x=x, y=y, b=b)
            yield case.expect("r", want) if kind != "u1" else Case(f"twice {m} x {k} x {n}", "{r} = matmul({x}, {y}, epilogue=twice)", x=x, y=y).expect("r", 2 * (x.astype("u8") @ y.astype("u8")))


@cases
def last_steps(rng):
    """Tests epilogues that run only after the last of several steps, transposed results, sums of all elements, and funcs that
    store."""
    x = [rng.standard_normal(shape) for shape in [(30, 20), (20, 40), (40, 25)]]
    product = x[0] @ x[1] @ x[2]
    for result in ("il", "li"):
        case = Case(f"chain {result}", "{r} = einsum(\"ij,jk,kl->%s\", {x}, {y}, {z}, epilogue=rectified(0))" % result, x=x[0], y=x[1], z=x[2])
        yield case.expect("r", np.maximum(np.einsum(f"il->{result}", product), 0), atol=1e-11)
    yield Case("one sum", "{r} = einsum(\"ij,jk->\", {x}, {y}, epilogue=twice)", x=x[0], y=x[1]).expect("r", 2 * (x[0] @ x[1]).sum(), atol=1e-10)
    yield Case("one operand", "{r} = einsum(\"ij->ji\", {x}, epilogue=blended({y}, 1, 2))", x=x[0], y=x[1][:, :30].copy()).expect("r", x[0].T + 2 * x[1][:, :30], atol=1e-14)
    b = rng.standard_normal(40)
    case = Case("both", "put_rectified({r}, {b})[30, 40] = matmul({x}, {y}, epilogue=twice)", x=x[0], y=x[1], b=b, r=np.zeros((30, 40)))
    yield case.expect("r", np.maximum(2 * (x[0] @ x[1]) + b, 0), atol=1e-11)


@some_cases(20)
def bytes_of_integers(rng):
    """Tensor cores sum these products in 32 bits. Results of any width have the same bits as the low bits of a 64-bit sum."""
    for kind in ("i1", "u1"):
        low, high = (-128, 128) if kind == "i1" else (0, 256)
        for m, k, n in [*ENDS, (130, 200, 270), (600, 48, 530), (6, 40000, 7)]:
            batch = [int(rng.integers(1, 4))] if rng.random() < 0.3 else []
            x, y = (lay_out(rng, rng.integers(low, high, [*batch, *shape]).astype(kind), kind) for shape in ((m, k), (k, n)))
            want = x.astype("i8") @ y.astype("i8")
            for result in ("i1", "u2", "i4", "i8"):
                case = Case(f"bytes {batch} {m} x {k} x {n} {kind} {result}", "{r} = matmul({x}, {y})", x=x, y=y, r=np.zeros(want.shape, result))
                yield case.expect("r", want.astype(result))


@some_cases(20)
def small_floats_of_bytes(rng):
    """Tests integers, which tensor cores sum exactly, and floats, for which they keep about 14 bits in a sum of 128 terms."""
    for name in small_floats.FORMATS:
        for m, k, n in [*ENDS, (130, 200, 270), (600, 48, 530)]:
            (x, a), (y, b) = (small_floats.pick(rng, name, shape, 4, whole=True) for shape in ((m, k), (k, n)))
            x, y = lay_out(rng, x, "u1"), lay_out(rng, y, "u1")
            yield Case(f"whole {name} {m} x {k} x {n}", "{r} = matmul({x}, {y}, %s=true)" % name, x=x, y=y).expect("r", (a @ b).astype("f4"))
            case = Case(f"packed {name} {m} x {k} x {n}", "{r} = matmul({x}, {y}, %s=true, epilogue=packed_%s(0.03125))" % (name, name), x=x, y=y)
            yield case.expect("r", small_floats.encode(name, a @ b / 32))
            (x, a), (y, b) = (small_floats.pick(rng, name, shape, 400) for shape in ((m, k), (k, n)))
            bias = rng.standard_normal(n).astype("f4")
            size = float(np.max(np.abs(a) @ np.abs(b), initial=0)) + 8
            case = Case(f"{name} {m} x {k} x {n}", "{r} = einsum(\"ij,jk->ik\", {x}, {y}, %s=true, epilogue=rectified({b}))" % name, x=x, y=y, b=bias)
            yield case.expect("r", np.maximum(a @ b + bias, 0).astype("f4"), atol=size * 2.0**-10)

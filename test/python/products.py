# RUN: %kjit-python %s
"""Options of products and of reductions over pairs: epilogues, 8-bit floats, several devices."""
import kjit
import numpy as np
import seeds

random = seeds.fresh_generator()
x, w, b = (random.standard_normal(shape).astype("f4") for shape in ((50, 70), (70, 30), 30))
want = x @ w
close = np.testing.assert_allclose
bounds = {"rtol": 1e-4, "atol": 1e-4}

# ---- epilogues ----


@kjit.func
def scaled(total, least):
    return max(total * 2, least)


close(kjit.matmul(x, w, epilogue=lambda total, b, k: max(total + k * b, 0), epilogue_operands=(b, 3)), np.maximum(want + 3 * b, 0), **bounds)
close(kjit.matmul(x, w, epilogue=scaled, epilogue_operands=0.5), np.maximum(2 * want, 0.5), **bounds)
close(kjit.matmul(x, w, epilogue=scaled, epilogue_operands=[b]), np.maximum(2 * want, b), **bounds)
close(kjit.einsum("ij,jk->ki", x, w, epilogue=lambda total: -total), -want.T, **bounds)
close(kjit.einsum("ij->i", x, epilogue=lambda total, old: total + old, epilogue_operands=(x[:, 0],)), x.sum(1) + x[:, 0], **bounds)
assert kjit.matmul(x, w, epilogue=lambda total: total > 0).dtype == bool
result = np.ones((50, 30), "f4")
assert kjit.matmul(x, w, out=result, epilogue=lambda total, old, k: k * total - old, epilogue_operands=(result, 2)) is result
close(result, 2 * want - 1, **bounds)
square = kjit.computed(lambda i, j, b: b[j] * b[j], (50, 30), b)
close(kjit.matmul(x, w, epilogue=lambda total, s: total + s, epilogue_operands=(square,)), want + b * b, **bounds)
own = [kjit.array(each) for each in (x, w, b)]
plan = kjit.matmul(*own[:2], epilogue=lambda total, b: total + b, epilogue_operands=own[2:], plan=True)
for factor in (1, 2):
    own[2].copy_from(factor * b)
    plan.run()
    close(plan.result.to_host(), want + factor * b, **bounds)

# ---- floats of 8 bits ----

bytes_of = {"e4m3": np.array([[0x38, 0x40, 0xB4]], "u1"), "e5m2": np.array([[0x3C, 0x40, 0xBA]], "u1")}  # 1, 2, -0.75
for name, given in bytes_of.items():
    options = {name: True}
    found = kjit.matmul(given, given.T, **options)
    assert found.dtype == np.float32 and found == 5.5625, (name, found)
    assert kjit.einsum("ij,kj->", given, given, epilogue=lambda total: 2 * total, **options) == 11.125
assert kjit.matmul(bytes_of["e4m3"], bytes_of["e4m3"].T).dtype.kind == "u"
close(kjit.matmul(x, w, tf32=True), want, atol=0.1)

# ---- devices ----


def product(u, v, i, j, k):
    return k * u * v + i - j


u, v = random.standard_normal(101), random.standard_normal(57)
alone = kjit.pairs(product, u, v, arguments=(0.5,), device="cpu")
first = kjit.pairs_smallest(product, u, v, 3, arguments=(0.5,), device="cpu")
for devices in (("cpu",), ["cpu", kjit.device("cpu"), "cpu"]):
    for chunk in (0, 10):
        close(kjit.pairs(product, u, v, arguments=(0.5,), devices=devices, chunk=chunk), alone)
        values, places = kjit.pairs_smallest(product, u, v, 3, arguments=(0.5,), devices=devices, chunk=chunk)
        close(values, first[0]), np.testing.assert_array_equal(places, first[1])
    close(kjit.pairs(product, kjit.array(u, device="cpu"), v, arguments=(0.5,), devices=devices).to_host(), alone)
gpus = [device for device in kjit.devices() if "cuda" in str(device)]
if gpus:
    close(kjit.pairs(product, u, v, arguments=(0.5,), devices=(gpus * 2)[:64]), alone)

# ---- rejected calls ----

for kind, text, call in (
    (TypeError, "an epilogue must be a Python function or a kjit.func, not int", lambda: kjit.matmul(x, w, epilogue=3)),
    (TypeError, "epilogue_operands contains None", lambda: kjit.matmul(x, w, epilogue=scaled, epilogue_operands=(None,))),
    (TypeError, "epilogue_operands requires epilogue=", lambda: kjit.matmul(x, w, epilogue_operands=(b,))),
    (kjit.ArgumentError, "`e0` has the extent 50 along axis 1 of the result", lambda: kjit.matmul(x, w, epilogue=scaled, epilogue_operands=(x[:, 0],))),
    (kjit.ArgumentError, "has 2 parameters, but the call passes a sum and 0 operands", lambda: kjit.matmul(x, w, epilogue=scaled)),
    (kjit.UnsupportedError, "the epilogue has 9 operands", lambda: kjit.matmul(x, w, epilogue=lambda a, b, c, d, e, f, g, h, i, j: a, epilogue_operands=(1,) * 9)),
    (TypeError, "bytes can hold floats of e4m3 or of e5m2", lambda: kjit.matmul(x, w, e4m3=True, e5m2=True)),
    (kjit.TypingError, "`x` has elements of type float32, but e4m3 values must be stored as uint8", lambda: kjit.matmul(x, w, e4m3=True)),
    (TypeError, "devices must be a tuple of 1 to 64", lambda: kjit.pairs(product, u, v, arguments=(1,), devices=())),
    (TypeError, "devices must be a tuple of 1 to 64", lambda: kjit.pairs(product, u, v, arguments=(1,), devices=("cpu",) * 65)),
    (TypeError, "devices must be a tuple of devices, ('cuda:0', 'cuda:1'), not 2", lambda: kjit.pairs(product, u, v, arguments=(1,), devices=2)),
    (TypeError, "devices must be a tuple of devices", lambda: kjit.pairs(product, u, v, arguments=(1,), devices="cpu")),
    (TypeError, "a device must be a kjit.Device or a string", lambda: kjit.pairs(product, u, v, arguments=(1,), devices=(3,))),
    (TypeError, "device and devices are both given", lambda: kjit.pairs(product, u, v, arguments=(1,), devices=("cpu",), device="cpu")),
    (kjit.ArgumentError, "cannot be prepared", lambda: kjit.pairs(product, u, v, arguments=(1,), devices=("cpu",), plan=True)),
):
    try:
        call()
    except kind as error:
        assert text in str(error), f"{error}, expected {text}"
    else:
        raise AssertionError(f"not refused: {text}")

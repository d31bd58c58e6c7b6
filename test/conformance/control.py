import numpy as np
from rows import row

TYPES = {"i8": np.int8, "u16": np.uint16, "i32": np.int32, "u64": np.uint64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bool": np.bool_}


@row("hints for the caches")
def _(r, rng):
    for name, dtype in TYPES.items():
        x = rng.integers(0, 100, 1000).astype(dtype)
        r.arrays_of(**{f"x{name}": x, f"o{name}": np.zeros((10, 1000), dtype)})
        r.launch("hints", "4, 128", f"o{name}", f"x{name}")
        r.expect(f"o{name}", np.stack([x] * 10))


@row("stores with hints are seen by loads")
def _(r, rng):
    for name in ("i32", "f64"):
        x = rng.integers(0, 100, 64).astype(TYPES[name])
        r.arrays_of(**{f"x{name}": x, f"o{name}": np.zeros(64, TYPES[name])})
        r.launch("stored_then_loaded", "1, 64", f"o{name}", f"x{name}")
        r.expect(f"o{name}", (x[::-1] + 1) * 2)


@row("clocks go on")
def _(r, rng):
    r.array("out", np.zeros(3, np.int64))
    r.launch("time", "1, 32", "out")
    r.expect("out", [1, 1, 32])


@row("assumptions that hold change nothing")
def _(r, rng):
    x = rng.integers(0, 1 << 30, 500).astype(np.int32)
    r.arrays_of(x=x, out=np.zeros(500, np.int32))
    r.launch("assumed", "2, 64", "out", "x")
    r.expect("out", x // 2)


def vector_bytes():
    """The value of a register, compared with the system's description of this processor."""
    with open("/proc/cpuinfo") as file:
        flags = next(line for line in file if line.startswith("flags")).split()
    return 64 if {"avx512f", "avx512vl", "avx512bw"} <= set(flags) else 32 if "avx" in flags else 16


def describe_known(r, on_cpu):
    r.arrays_of(a=np.zeros(1, np.float16), b=np.zeros(1, np.uint8), c=np.zeros(1, np.bool_), out=np.full(9, 9, np.int32))
    r.launch("known", "1, 32", "out", "a", "b", "c")

    def check(out):
        np.testing.assert_array_equal(out[:6], [1, -1, 9, 2, 1, 0] if on_cpu else [0, 9, 14, 2, 1, 0])
        assert out[6] == 0 if on_cpu else out[6] >= 75
        assert out[7] == 9
        assert out[8] == (vector_bytes() if on_cpu else 16)

    r.verify(["out"], check)


@row("the target and types at compile time", targets=("cpu",))
def _(r, rng):
    describe_known(r, True)


@row("the target and types at compile time, on a GPU", targets=("cuda",))
def _(r, rng):
    describe_known(r, False)

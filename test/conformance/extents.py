import numpy as np

from rows import row


def counted(r, name, kernel, elements, *arguments):
    """A kernel that numbers the elements of its grid_range."""
    r.array(name, np.zeros(16, np.int32))
    r.launch(kernel, "", name, *arguments)
    r.expect(name, np.where(np.arange(16) < elements, np.arange(1, 17), 0))


@row("extents: shifts, wrap-around, f16, small integers, literals")
def _(r, rng):
    counted(r, "down", "shifted_down", 15, "0u32")
    counted(r, "far", "shifted_far", 10, "20i32")
    counted(r, "half", "of_half", 1, "0.33325f16")
    counted(r, "small", "small", 4, "130u8")
    counted(r, "literal", "of_literal", 7, "2")
    counted(r, "saturated", "saturated", 15, "1000f32")
    r.array("wrapped", np.zeros((65, 2), np.int32))
    r.launch("wrapped", "", "wrapped", "65536i32", "65537i32")  # the product is 65536
    r.expect("wrapped", np.stack([np.arange(1, 66), np.zeros(65)], axis=1))


@row("extents: @grid and shared arrays")
def _(r, rng):
    r.arrays_of(blocks=np.zeros(15, np.int64), tile=np.zeros(4, np.int64))
    r.launch("blocks", "", "blocks", "0u32")
    r.launch("tile", "", "tile", "20i32", "0u32")
    r.expect("blocks", np.full(15, 15))
    r.expect("tile", np.array([10, 7, 10, 7]))


@row("constants: negative powers of unsigned integers")
def _(r, rng):
    r.arrays_of(r=np.ones(3, np.uint64), known=np.ones(4, np.uint64))
    r.launch("powers", "", "r", "known", "3u32", "18446744073709551615u64", "3", "18446744073709551615", "-3i32")
    r.expect("r", np.array([0, 0, 1]))
    r.expect("known", np.array([0, 0, 1, 0]))


@row("constants: rounded once")
def _(r, rng):
    r.array("r", np.zeros(5, np.float32))
    r.launch("rounded", "", "r", "4629700416936869889i64", "4629700416936869889")
    wide = np.float32(2.0**62 + 2.0**55)
    r.expect("r", np.array([wide, wide, wide, wide, 1 + 2.0**-10]))


@row("constants: differences and quotients of floats")
def _(r, rng):
    r.arrays_of(d=np.ones(4, np.float32), q=np.zeros(6, np.float32), x=np.array([np.inf], np.float32))
    r.launch("differences", "", "d", "x")
    r.launch("float_division", "", "q", "1f32", "0f32")
    r.expect("d", np.array([0, 0, np.inf, 0]))
    r.expect("q", np.array([np.inf, np.inf, np.nan, np.nan, -4, -1]))


@row("powers: reciprocals of what overflows")
def _(r, rng):
    r.array("r", np.zeros(4, np.float32))
    r.launch("reciprocals", "", "r", "300f16", "2f32")
    third = np.float16(1) / np.float16(300)
    r.expect("r", np.array([np.float32(third * third), 2.0**-140, 0.5, 0.125], np.float32))

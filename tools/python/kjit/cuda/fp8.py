"""8-bit floats in kernels, under the names of CUDA's header cuda_fp8.h, which Numba has as
`numba.cuda._internal.cuda_fp8`: the types fp8_e5m2, fp8_e4m3 and fp8_e8m0, and conversions to their
bits. The vector types x2 and x4 are missing.

`fp8_e5m2(x)` and `fp8_e4m3(x)` round a number to the nearest value of the type, ties to even.
`fp8_e8m0(x)` rounds upward to a power of two. A number that is too large becomes the largest number
of the type. `float32(v)`, `int32(v)` and the other number types convert back. A value that an
integer type cannot hold becomes the nearest integer of that type."""

import enum

from ..frontend.words import Form, Text


class saturation_t(enum.IntEnum):
    """The result for a number that is too large: the largest number (SATFINITE), or infinity or NaN (NOSAT)."""

    NOSAT = 0
    SATFINITE = 1


class fp8_interpretation_t(enum.IntEnum):
    """The 8-bit format of a conversion."""

    E4M3 = 0
    E5M2 = 1


class cudaRoundMode(enum.IntEnum):
    """How a conversion to e8m0 rounds: toward zero or upward. CUDA has no other modes for it."""

    cudaRoundZero = 1
    cudaRoundPosInf = 2


# The names of the structs in the kernel IR.
_E5M2, _E4M3, _E8M0, _RAW = "float8_e5m2", "float8_e4m3", "float8_e8m0", "bfloat16_raw"
_STRUCTS = {name: f"struct {name} {{ bits: u8 }}" for name in (_E5M2, _E4M3, _E8M0)} | {_RAW: f"struct {_RAW} {{ x: u16 }}"}

# Without saturation a number overflows if it is rounded to more than the type's largest number. For
# e4m3 this is 448, which is even, so 464, halfway to the next number, is rounded down. For e5m2 it is
# 57344, which is odd, so 61440 is rounded up and overflows.
_BITS_E5M2 = Text(
    "e5m2_bits",
    """
func e5m2_bits(x, const saturates: bool) -> u8 {
  if isnan(x) { return 0x7fu8 }
  if not saturates and abs(x) >= dtype(x)(61440) { return x < zero(dtype(x)) ? 0xfcu8 : 0x7cu8 }
  return to_e5m2(x)
}""",
)
_BITS_E4M3 = Text(
    "e4m3_bits",
    """
func e4m3_bits(x, const saturates: bool) -> u8 {
  if isnan(x) { return 0x7fu8 }
  if not saturates and abs(x) > dtype(x)(464) { return x < zero(dtype(x)) ? 0xffu8 : 0x7fu8 }
  return to_e4m3(x)
}""",
)
# The exponent of the absolute value, biased by 127. Zero and all numbers below 2^-127 become
# 2^-127. A finite number overflows only if it is rounded upward.
_BITS_E8M0 = Text(
    "e8m0_bits",
    """
func e8m0_bits(x, const saturates: bool, const up: bool) -> u8 {
  var code = 0i64
  if is_integer(dtype(x)) or dtype(x) == bool {
    let size = u64(x < zero(dtype(x)) ? -i64(x) : i64(x))
    if size == 0u64 { return 0u8 }
    code = 127 + 63 - i64(clz(size))
    if up and (size & (size - 1u64)) != 0u64 { code = code + 1 }
    return u8(code)
  }
  let bits = bitcast(u64, f64(x)) & 0x7fffffffffffffffu64
  if bits > 0x7ff0000000000000u64 { return 0xffu8 }
  code = i64(bits >> 52) - 896
  if up and (bits & 0xfffffffffffffu64) != 0u64 { code = code + 1 }
  let is_finite = bits < 0x7ff0000000000000u64
  return u8(min(max(code, 0i64), saturates or is_finite and not up ? 254i64 : 255i64))
}""",
)
_E8M0_VALUE = Text(
    "e8m0_value",
    """
func e8m0_value(bits: u8) -> f32 {
  if bits == 0xffu8 { return bitcast(f32, 0x7fff0000u32) }
  return bits == 0u8 ? bitcast(f32, 0x00400000u32) : bitcast(f32, u32(bits) << 23)
}""",
)
_VALUE = Text(
    "float8_value",
    f"""
func float8_value(v) -> f32 {{
  if dtype(v) == {_E5M2} {{ return from_e5m2(v.bits) }}
  if dtype(v) == {_E4M3} {{ return from_e4m3(v.bits) }}
  return e8m0_value(v.bits)
}}""",
    (_E8M0_VALUE,),
)
_IS_FLOAT8 = f"dtype(x) == {_E5M2} or dtype(x) == {_E4M3} or dtype(x) == {_E8M0}"


def _declare(emitter, names):
    builder = emitter.builder
    for name in names:
        if name not in builder.names:
            builder.names.add(name)
            builder.constants.append([_STRUCTS[name]])
        emitter.used.add(name)


def _maker(name, bits, more):
    """Returns the func that makes a value from a number."""
    return Text(
        f"{name}_of",
        f"""
func {name}_of(x) @numba {{
  if dtype(x) == {name} {{ return x }}
  if {_IS_FLOAT8} {{ return {name}({bits.__name__}(float8_value(x), true{more})) }}
  if is_float(dtype(x)){" or is_integer(dtype(x)) or dtype(x) == bool" * bool(more)} {{ return {name}({bits.__name__}(x, true{more})) }}
  return {name}({bits.__name__}(f32(x), true{more}))
}}""",
        (bits, _VALUE),
    )


class _Kind(Form):
    """An 8-bit float type. A kernel calls it to make a value from a number."""

    def __init__(self, name, maker):
        super().__init__(f"cuda.fp8.{name}", "x", "{x})")
        self.__name__, self.maker = name, maker

    def expand(self, emitter, call):
        _declare(emitter, (_E5M2, _E4M3, _E8M0))
        place, *rest = super().expand(emitter, call)
        return [place, f"{emitter.use(self.maker)}(", *rest]


class _Conversion(Form):
    """A conversion between a number and the bits of a format. The last arguments are constants."""

    def __init__(self, name, of, constants, text_of, structs=()):
        super().__init__(f"cuda.fp8.{name}", f"x {constants}".strip(), "")
        self.of, self.constants, self.text_of, self.structs = of, constants.split(), text_of, structs

    def expand(self, emitter, call):
        bound = self.bind(call)
        if isinstance(bound, str):
            raise emitter.error(call, bound)
        values = []
        for name in self.constants:
            value = emitter.static_value(bound[name])
            if not isinstance(value, int):
                raise emitter.error(bound[name], f"{self.name}(): `{name}` must be a constant such as saturation_t.SATFINITE")
            values.append(int(value))
        _declare(emitter, self.structs)
        try:
            function, rest = self.text_of(*values)
        except ValueError as error:
            raise emitter.error(call, f"{self.name}(): {error}") from None
        before, after = self.of
        return [emitter.source.place(call), f"{emitter.use(function)}({before}", *emitter.expression(bound["x"]), f"{after}{rest})"]


def _to_fp8(saturation, interpretation):
    function = _BITS_E5M2 if fp8_interpretation_t(interpretation) == fp8_interpretation_t.E5M2 else _BITS_E4M3
    return function, f", {'true' if saturation_t(saturation) else 'false'}"


def _to_e8m0(saturation, rounding):
    if rounding not in (cudaRoundMode.cudaRoundZero, cudaRoundMode.cudaRoundPosInf):
        raise ValueError("the rounding mode must be cudaRoundZero or cudaRoundPosInf")
    flags = saturation_t(saturation), rounding == cudaRoundMode.cudaRoundPosInf
    return _BITS_E8M0, "".join(f", {'true' if flag else 'false'}" for flag in flags)


_RAW_OF = Text(
    "raw_of_e8m0",
    f"""
func raw_of_e8m0(bits) -> {_RAW} {{
  return {_RAW}(u16(bitcast(u32, e8m0_value(u8(bits))) >> 16))
}}""",
    (_E8M0_VALUE,),
)
fp8_e5m2 = _Kind("fp8_e5m2", _maker(_E5M2, _BITS_E5M2, ""))
fp8_e4m3 = _Kind("fp8_e4m3", _maker(_E4M3, _BITS_E4M3, ""))
fp8_e8m0 = _Kind("fp8_e8m0", _maker(_E8M0, _BITS_E8M0, ", true"))
_OF = {"float": ("f32(", ")"), "double": ("f64(", ")"), "bfloat16raw": ("bitcast(bf16, (", ").x)")}
_made = {f"cvt_{word}_to_fp8": _Conversion(f"cvt_{word}_to_fp8", of, "saturate interpretation", _to_fp8) for word, of in _OF.items()}
_made |= {f"cvt_{word}_to_e8m0": _Conversion(f"cvt_{word}_to_e8m0", of, "saturate rounding", _to_e8m0) for word, of in _OF.items()}
_made["cvt_e8m0_to_bf16raw"] = _Conversion("cvt_e8m0_to_bf16raw", ("", ""), "", lambda: (_RAW_OF, ""), (_RAW,))
globals().update(_made)


def is_fp8_supported():
    """Returns True, because every device supports the conversions of this module. GPUs from sm_89 on
    have instructions for the conversions of e5m2 and e4m3."""
    return True


# ---- conversions of values to numbers ----

# The smallest and largest integers of a type, and the result for NaN. For NaN, CUDA's 64-bit integers have the bits of 2^63.
_INTEGERS = {f"i{n}": (-(2 ** (n - 1)), 2 ** (n - 1) - 1, -(2**63) if n == 64 else 0) for n in (8, 16, 32, 64)}
_INTEGERS |= {f"u{n}": (0, 2**n - 1, 2**63 if n == 64 else 0) for n in (8, 16, 32, 64)}
PYTHONS = {int: "i64", float: "f64"}  # the types that the conversions int and float of Python give
_converters: dict = {}


def converter(emitter, word, own):
    """Returns the name of a func that converts a number or a value of these types to the type
    `word`. own: the kernel IR text that converts a number."""
    key = word, own
    if key not in _converters:
        _converters[key] = Text(f"{word}_of_float8", _converter_text(word, own), (_VALUE,))
    _declare(emitter, (_E5M2, _E4M3, _E8M0))
    return emitter.use(_converters[key])


def _converter_text(word, own):
    result = f"{word}(v)"
    if word in _INTEGERS:
        low, high, of_nan = _INTEGERS[word]
        result = f"isnan(v) ? {word}({of_nan}) : v >= {float(high)}f32 ? {word}({high}) : v <= {float(low)}f32 ? {word}({low}) : {word}(v)"
    elif word in ("c64", "c128"):
        result = f"{word}({'f32' if word == 'c64' else 'f64'}(v))"
    return f"""
func {word}_of_float8(x) @numba {{
  if {_IS_FLOAT8} {{ let v = float8_value(x); return {result} }}
  return {own}(x)
}}"""


__all__ = ["cudaRoundMode", "fp8_e4m3", "fp8_e5m2", "fp8_e8m0", "fp8_interpretation_t", "is_fp8_supported", "saturation_t", *_made]  # noqa: PLE0604

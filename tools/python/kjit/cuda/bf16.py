"""The names of `numba.cuda.bf16`: the type bfloat16 and its functions in kernels."""

from ..frontend.words import Form, Text
from . import types, words

bfloat16 = types.bfloat16

# The bits that a bfloat16 cannot keep decide how the conversion rounds: to nearest even, toward
# zero, down or up. A float32 is rounded by its bits, so subnormal numbers are right, too. An
# integer is first converted to a float64. If the float64 cannot hold the lowest bits of the integer
# and one of them is set, the float64's lowest bit is set.
_OF_F32 = Text(
    "bf16_of_f32",
    """
func bf16_of_f32(x: f32, const down: bool, const up: bool) -> bf16 {
  if isnan(x) { return bf16(nan) }
  let bits = bitcast(u32, x)
  let is_below = bits >= 0x80000000u32
  let is_more = (bits & 0xffffu32) != 0 and (is_below ? down : up)
  return bitcast(bf16, u16((bits >> 16) + (is_more ? 1u32 : 0u32)))
}""",
)
_OF_INTEGER = Text(
    "bf16_of_integer",
    """
func bf16_of_integer(size: u64, is_below: bool, const nearest: bool, const down: bool, const up: bool) -> bf16 {
  let rest = size & 0x7ffu64
  let kept = size - rest
  let exact = f64(size < 0x20000000000000u64 ? size : (rest != 0 ? kept | 0x800u64 : kept))
  let bits = bitcast(u64, exact)
  let cut = bits & 0x1fffffffffffu64
  let low = bits - cut
  var is_more = cut != 0 and (is_below ? down : up)
  if nearest { is_more = cut > 0x100000000000u64 or (cut == 0x100000000000u64 and ((low >> 45) & 1) != 0) }
  let result = f32(bitcast(f64, is_more ? low + 0x200000000000u64 : low))
  return bf16(is_below ? -result : result)
}""",
)


class _Rounded(Form):
    """A conversion that a function of the kernel IR implements."""

    def __init__(self, name, function, text):
        super().__init__(name, "x", text)
        self.function = function

    def expand(self, emitter, call):
        symbol = emitter.builder.function(self.function)
        emitter.used.add(symbol)
        place, *rest = super().expand(emitter, call)
        return [place, f"{symbol}(", *rest]


def _truth(condition):
    return "true" if condition else "false"


_MODES = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_made = {}
for _bits in (8, 16, 32, 64):
    for _kind in (f"int{_bits}", f"uint{_bits}"):
        _text = types.NAMES[_kind].text
        for _mode, _word in _MODES.items():
            if _bits == 8 and _mode != "rz":
                continue
            _name = f"bfloat16_to_{_kind}_{_mode}"
            _made[_name] = Form(f"cuda.bf16.{_name}", "x", f"{_text}({_word}(f32(bf16({{x}}))))")
            if _bits == 8:
                continue
            _name = f"{_kind}_to_bfloat16_{_mode}"
            _size = f"u64({_text}({{x}}))" if _text[0] == "u" else f"u64(abs(i64({_text}({{x}}))))"
            _below = "false" if _text[0] == "u" else f"{_text}({{x}}) < 0"
            _flags = ", ".join(map(_truth, (_mode == "rn", _mode == "rd", _mode == "ru")))
            _made[_name] = _Rounded(f"cuda.bf16.{_name}", _OF_INTEGER, f"{_size}, {_below}, {_flags})")
for _mode in ("rz", "rd", "ru"):
    _name = f"float32_to_bfloat16_{_mode}"
    _made[_name] = _Rounded(
        f"cuda.bf16.{_name}", _OF_F32, f"f32({{x}}), {_truth(_mode == 'rd')}, {_truth(_mode == 'ru')})"
    )
for _name, _text in {
    "float32_to_bfloat16": "bf16(f32({x}))",
    "float32_to_bfloat16_rn": "bf16(f32({x}))",
    "float64_to_bfloat16": "bf16(f64({x}))",
    "bfloat16_to_float32": "f32(bf16({x}))",
    "bfloat16_as_int16": "bitcast(i16, bf16({x}))",
    "bfloat16_as_uint16": "bitcast(u16, bf16({x}))",
    "int16_as_bfloat16": "bitcast(bf16, i16({x}))",
    "uint16_as_bfloat16": "bitcast(bf16, u16({x}))",
    "hneg": "(-bf16({x}))",
    "hisnan": "isnan(bf16({x}))",
    "hisinf": "i32(isinf(bf16({x})) ? (bf16({x}) < bf16(0) ? -1i32 : 1i32) : 0i32)",
    "hrcp": "(bf16(1) / bf16({x}))",
}.items():
    _made[_name] = Form(f"cuda.bf16.{_name}", "x", _text)
for _name, _word in words._UNARY_HALF.items():
    _made[_name] = Form(f"cuda.bf16.{_name}", "x", f"{_word}(bf16({{x}}))")
for _name in ("htanh", "htanh_approx"):
    # in CUDA, htanh_approx may be less exact than htanh; in kjit both are equally exact
    _made[_name] = Form(f"cuda.bf16.{_name}", "x", "tanh(bf16({x}))")
for _name, _word in words._BINARY_HALF.items():
    _made[_name] = Form(f"cuda.bf16.{_name}", "a b", f"(bf16({{a}}) {_word} bf16({{b}}))")
    _made[_name].is_truth = _name in words._COMPARISONS
    if _name in ("hadd", "hsub", "hmul"):
        _made[_name + "_rn"] = Form(f"cuda.bf16.{_name}_rn", "a b", _made[_name].text)
        _saturated = f"min(max({_made[_name].text}, bf16(0)), bf16(1))"
        _made[_name + "_sat"] = Form(f"cuda.bf16.{_name}_sat", "a b", _saturated)
_FMA = "fma(bf16({a}), bf16({b}), bf16({c}))"
_made["hfma"] = Form("cuda.bf16.hfma", "a b c", _FMA)
_made["hfma_sat"] = Form("cuda.bf16.hfma_sat", "a b c", f"min(max({_FMA}, bf16(0)), bf16(1))")
_made["hfma_relu"] = Form("cuda.bf16.hfma_relu", "a b c", f"max({_FMA}, bf16(0))")
for _word in ("max", "min"):
    _pick = f"{_word}(bf16({{a}}), bf16({{b}}))"
    _made["h" + _word] = Form(f"cuda.bf16.h{_word}", "a b", _pick)
    _nan = f"(isnan(bf16({{a}})) or isnan(bf16({{b}})) ? bf16(nan) : {_pick})"
    _made[f"h{_word}_nan"] = Form(f"cuda.bf16.h{_word}_nan", "a b", _nan)
_made["isnan"], _made["isinf"] = _made["hisnan"], _made["hisinf"]
globals().update(_made)
__all__ = ["bfloat16", *_made]  # noqa: PLE0604

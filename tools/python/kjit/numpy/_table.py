"""The table of element-wise operations, which has for each operation the kinds of data types that
it accepts, its result type and its func."""

import functools

from ..frontend import ufuncs
from ..frontend.words import Text
from . import _dtypes
from ._dtypes import BY_TEXT, DEFAULTS, KIND, PART
from ._engine import Kernel, cast_call, cast_func, cast_needs
from ._errors import PromotionError
from ._funcs import Func

# The kinds are b(ool), i(nteger), u(nsigned), f(loat) and c(omplex). An operation without integer
# kinds computes integers in float64. The result is: same, the type of the operands; bool; or real,
# the type of the real part. The columns are the name, the NumPy ufunc whose func is used, the
# kinds, and the result.
_TABLE = """
abs                  absolute       biufc  real
acos                 arccos         fc     same
acosh                arccosh        fc     same
add                  add            biufc  same
asin                 arcsin         fc     same
asinh                arcsinh        fc     same
atan                 arctan         fc     same
atan2                arctan2        f      same
atanh                arctanh        fc     same
bitwise_and          bitwise_and    biu    same
bitwise_count        bitwise_count  biu    u8
bitwise_invert       invert         biu    same
bitwise_left_shift   left_shift     iu     same
bitwise_or           bitwise_or     biu    same
bitwise_right_shift  right_shift    iu     same
bitwise_xor          bitwise_xor    biu    same
cbrt                 cbrt           f      same
ceil                 ceil           biuf   same
conj                 conjugate      iufc   same
copysign             copysign       f      same
cos                  cos            fc     same
cosh                 cosh           fc     same
deg2rad              deg2rad        f      same
divide               divide         fc     same
equal                equal          biufc  bool
exp                  exp            fc     same
exp2                 exp2           fc     same
expm1                expm1          fc     same
fabs                 fabs           f      same
float_power          float_power    fc     same
floor                floor          biuf   same
floor_divide         floor_divide   iuf    same
fmax                 fmax           biufc  same
fmin                 fmin           biufc  same
fmod                 fmod           iuf    same
gcd                  gcd            iu     same
greater              greater        biufc  bool
greater_equal        greater_equal  biufc  bool
heaviside            heaviside      f      same
hypot                hypot          f      same
isfinite             isfinite       biufc  bool
isinf                isinf          biufc  bool
isnan                isnan          biufc  bool
lcm                  lcm            iu     same
less                 less           biufc  bool
less_equal           less_equal     biufc  bool
log                  log            fc     same
log10                log10          fc     same
log1p                log1p          fc     same
log2                 log2           fc     same
logaddexp            logaddexp      f      same
logaddexp2           logaddexp2     f      same
logical_and          logical_and    biufc  bool
logical_not          logical_not    biufc  bool
logical_or           logical_or     biufc  bool
logical_xor          logical_xor    biufc  bool
maximum              maximum        biufc  same
minimum              minimum        biufc  same
multiply             multiply       biufc  same
negative             negative       iufc   same
nextafter            nextafter      f      same
not_equal            not_equal      biufc  bool
positive             positive       iufc   same
pow                  power          iufc   same
rad2deg              rad2deg        f      same
reciprocal           reciprocal     iufc   same
remainder            remainder      iuf    same
round                rint           biufc  same
sign                 sign           iufc   same
signbit              signbit        f      bool
sin                  sin            fc     same
sinh                 sinh           fc     same
spacing              spacing        f      same
sqrt                 sqrt           fc     same
square               square         iufc   same
subtract             subtract       iufc   same
tan                  tan            fc     same
tanh                 tanh           fc     same
trunc                trunc          biuf   same
"""
# Types whose operations are computed in a wider type.
_WIDER = {"f16": "f32", "bf16": "f32"}
# Operations that are not computed in a wider type, because their result depends on the type's
# precision.
_BY_SPACING = ("nextafter", "spacing")
# Operations that compute bools in int8, as NumPy does. In other operations without the kind b, such as subtract, NumPy
# rejects bools.
_BOOLS_AS_INT8 = frozenset(
    "bitwise_left_shift bitwise_right_shift conj floor_divide fmod pow reciprocal remainder square".split()
)
# Operations that cost less than reading an element from memory.
_CHEAP = frozenset(
    "abs add bitwise_and bitwise_invert bitwise_or bitwise_xor ceil clip conj copysign equal floor greater greater_equal imag isnan "
    "less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal positive real square subtract "
    "trunc where cast".split()
)
# Operations whose results have the same bits in all code: IEEE 754 rounds them correctly, or they do
# not round. The C library's functions and their vectorized forms can differ in the last bit.
EXACT = _CHEAP | frozenset(
    "bitwise_count bitwise_left_shift bitwise_right_shift bitwise_xor divide fmax fmin isfinite isinf logical_xor reciprocal round signbit "
    "sqrt".split()
)

# The rows by number; the extension refers to a row by its number.
BY_INDEX: list["Row"] = []


class Row:
    """An element-wise operation. A key of kernel(key) has for each operand its type's name, or "?"
    and a kind for a Python number."""

    def __init__(self, name, text, kinds, result, count, ufunc=None):
        self.name, self.text, self.kinds, self.result, self.count, self.ufunc = name, text, kinds, result, count, ufunc
        self.index = len(BY_INDEX)
        BY_INDEX.append(self)
        self._kernels = {}
        self._funcs = {}

    def kernel(self, key):
        """Returns the Kernel for operands with this key."""
        found = self._kernels.get(key)
        if found is None:
            found = self._kernels[key] = self._make(key)
        return found

    def compute_type(self, key):
        """Returns the type name to which the operands are converted."""
        texts = [word for word in key if word[0] != "?"]
        kinds = [word[1] for word in key if word[0] == "?"]
        if texts:
            text = _dtypes.promote(texts, self.name)
        else:
            text = DEFAULTS[max(kinds, key="biufc".index)]
        for kind in kinds:
            text = _dtypes.with_scalar(text, kind)
        if KIND[text] in self.kinds:
            return text
        if KIND[text] in "biu" and "f" in self.kinds and "i" not in self.kinds:
            return "f64"
        if KIND[text] == "b" and self.name in _BOOLS_AS_INT8:
            return "i8"
        raise PromotionError(f"{self.name} does not support arrays of {BY_TEXT[text].name}")

    def result_type(self, text):
        if self.result == "same":
            return text
        return PART.get(text, text) if self.result == "real" else self.result

    def _make(self, key):
        text = self.compute_type(key)
        inner = text if self.name in _BY_SPACING else _WIDER.get(text, text)
        if text == "f16" and self.name in _BY_SPACING:
            raise PromotionError(f"{self.name} does not support arrays of {BY_TEXT[text].name}")
        takes_numbers = any(word[0] != "?" for word in key) and all(word in ("?i", "?f", "?b", "?c", text) for word in key)
        call = functools.partial(self.call, inner)
        result = self.result_type(text)
        return Kernel(self.name, self.func(inner), text, result, takes_numbers, call, (self.text,), self.name in _CHEAP, self.name in EXACT)

    def call(self, text, names):
        """Returns the operation in a type, as an expression of the kernel IR."""
        given = ", ".join(f"{self.parameter_type(i, text)}({name})" for i, name in enumerate(names))
        return f"{self.text.__name__}({given})"

    def func(self, text):
        """Returns the func that computes in a type."""
        if text not in self._funcs:
            names = [f"x{i}" for i in range(self.count)]
            made = f"func element({', '.join(names)}) @strict {{ return {self.call(text, names)} }}"
            self._funcs[text] = Func("element", made, (self.text,))
        return self._funcs[text]

    def parameter_type(self, i, text):
        return text


class Choice(Row):
    """where(condition, x1, x2); the first operand is a bool."""

    def compute_type(self, key):
        if key[0] not in ("bool", "?b"):
            raise PromotionError(f"where: the condition must be an array of bool, not of {BY_TEXT[key[0]].name if key[0] in BY_TEXT else 'numbers'}")
        return super().compute_type(key[1:])

    def parameter_type(self, i, text):
        return "bool" if i == 0 else text


class Cast(Row):
    """The conversion to a data type."""

    def __init__(self, target):
        super().__init__("cast", None, "biufc", target, 1)

    def _make(self, key):
        source, target = key[0], self.result
        call = functools.partial(self.call_of, source)
        return Kernel(f"cast to {target}", cast_func(source, target), source, target, False, call, cast_needs(target), True, True)

    def call_of(self, source, names):
        return cast_call(source, self.result, names[0])


def _count(text):
    """Returns the number of parameters of a func."""
    head = text.text.split(f"func {text.__name__}(", 1)[1]
    return head.split(")", 1)[0].count(",") + 1


ROWS = {}
for _line in _TABLE.strip().splitlines():
    _name, _ufunc, _kinds, _result = _line.split()
    _func = ufuncs.BY_NAME[_ufunc]
    ROWS[_name] = Row(_name, _func, _kinds, _result, _count(_func), _ufunc)

# Operations for which the standard requires other results for infinities than NumPy and Python return.
_FLOOR_DIVIDE = Text(
    "std_floor_divide",
    """
func std_floor_divide(a, b) {
  if is_float(dtype(a)) {
    if isinf(a) and isfinite(b) { return a * copysign(dtype(a)(1), b) }
    if isfinite(a) and isinf(b) { return copysign(dtype(a)(0), a) * copysign(dtype(a)(1), b) }
  }
  return np_floor_divide(a, b)
}""",
    (ufuncs.BY_NAME["floor_divide"],),
)
_EXPM1 = Text(
    "std_expm1",
    """
func std_expm1(a) {
  if is_complex(dtype(a)) {
    if a.imag == 0 { return dtype(a)(expm1(a.real) + dtype(a.real)(0), a.imag) }
    if isinf(a.real) and not isfinite(a.imag) {
      return a.real < 0 ? dtype(a)(dtype(a.real)(-1), dtype(a.real)(0)) : dtype(a)(a.real, dtype(a.real)(nan))
    }
  }
  return np_expm1(a)
}""",
    (ufuncs.BY_NAME["expm1"],),
)
_TANH = Text(
    "std_tanh",
    """
func std_tanh(a) {
  if is_complex(dtype(a)) {
    if isinf(a.real) { return dtype(a)(copysign(dtype(a.real)(1), a.real), copysign(dtype(a.real)(0), a.imag)) }
    if a.real != 0 and not isfinite(a.imag) { return dtype(a)(dtype(a.real)(nan), dtype(a.real)(nan)) }
  }
  return np_tanh(a)
}""",
    (ufuncs.BY_NAME["tanh"],),
)
# NumPy's rint converts integers to floats; the standard's round does not.
_ROUND = Text(
    "std_round",
    """
func std_round(a) {
  if is_integer(dtype(a)) or dtype(a) == bool { return a }
  return np_rint(a)
}""",
    (ufuncs.BY_NAME["rint"],),
)
for _name, _text in (("floor_divide", _FLOOR_DIVIDE), ("expm1", _EXPM1), ("tanh", _TANH), ("round", _ROUND)):
    ROWS[_name].text = _text

# Real and imaginary parts, and operations with three operands.
_REAL = Text("np_real", "func np_real(a) {\n  if is_complex(dtype(a)) { return a.real }\n  return a\n}")
_IMAG = Text("np_imag", "func np_imag(a) {\n  if is_complex(dtype(a)) { return a.imag }\n  return dtype(a)(0)\n}")
_WHERE = Text("np_where", "func np_where(c, a, b) { return c ? a : b }")
_CLIP = Text(
    "np_clip",
    "func np_clip(a, b, c) { return np_minimum(np_maximum(a, b), c) }",
    (ufuncs.BY_NAME["minimum"], ufuncs.BY_NAME["maximum"]),
)
ROWS["real"] = Row("real", _REAL, "iufc", "real", 1)
ROWS["imag"] = Row("imag", _IMAG, "iufc", "real", 1)
ROWS["clip"] = Row("clip", _CLIP, "iuf", "same", 3)
ROWS["where"] = Choice("where", _WHERE, "biufc", "same", 3)

# The conversions, by the name of the target type.
CASTS = {text: Cast(text) for text in KIND if text in BY_TEXT}

# The rows by the name of the NumPy ufunc.
BY_UFUNC = {row.ufunc: row for row in ROWS.values() if row.ufunc}

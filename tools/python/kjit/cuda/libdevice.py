"""The functions of `numba.cuda.libdevice`. Each function is an expression of the kernel IR, which
has most of them as built-ins.

A C function that writes through a pointer returns a tuple `(result, written value)`, as in Numba.
"""

import types

from ..frontend.words import Form, Text

_DIRECTIONS = ("rd", "ru", "rz")


# ---- rounding down, up and toward zero ----


def _narrow(direction):
    """Converts a float64 to float32 in a direction: returns the nearest float32, or its neighbour
    if the nearest one lies on the wrong side."""
    is_wrong, towards = {
        "rd": ("f64(y) > x", "f32(-inf)"),
        "ru": ("f64(y) < x", "f32(inf)"),
        "rz": ("abs(f64(y)) > abs(x)", "f32(0)"),
    }[direction]
    return Text(
        f"libdevice_narrow_{direction}",
        f"""
func libdevice_narrow_{direction}(x: f64) {{
  let y = f32(x)
  return {is_wrong} ? nextafter(y, {towards}) : y
}}""",
    )


def _towards(direction):
    """Returns the kernel IR expression that rounds a result in the direction. `m` is the number
    nearest to the exact result, and `above` or `below` is true if the exact result is above or
    below m."""
    return {
        "rd": "below ? nextafter(m, f64(-inf)) : m",
        "ru": "above ? nextafter(m, f64(inf)) : m",
        "rz": "m > 0f64 and below or m < 0f64 and above ? nextafter(m, 0f64) : m",
    }[direction]


def _zero(direction):
    """Returns the zero that a directed fma adds to an exact product; it keeps the sign of a product
    that is 0."""
    return "0f64" if direction == "rd" else "-0f64"


def _divide(direction):
    """Divides float64 numbers in a direction. The quotient of the mantissas has an exact remainder,
    whose sign says on which side of the quotient the exact result lies. Two multiplications then
    apply the exponent: the first one is exact, and the second one rounds in the same direction."""
    zero = _zero(direction)
    return Text(
        f"libdevice_divide_{direction}",
        f"""
func libdevice_divide_{direction}(x: f64, y: f64) {{
  if not isfinite(x) or not isfinite(y) or x == 0f64 or y == 0f64 {{ return x / y }}
  let a = frexp(x)
  let b = frexp(y)
  let m = a[0] / b[0]
  let rest = fma(-m, b[0], a[0])
  let above = rest != 0f64 and (rest > 0f64) == (b[0] > 0f64)
  let below = rest != 0f64 and not above
  let rounded = {_towards(direction)}
  let exponent = min(max(a[1] - b[1], -1200i32), 1100i32)
  let half = exponent // 2i32
  let scaled = fma_{direction}(rounded, ldexp(1f64, half), {zero})
  return fma_{direction}(scaled, ldexp(1f64, exponent - half), {zero})
}}""",
    )


def _root(direction):
    """Computes float64 square roots in a direction, by the sign of the remainder x - root * root.
    The root of a number is never subnormal."""
    return Text(
        f"libdevice_root_{direction}",
        f"""
func libdevice_root_{direction}(x: f64) {{
  if not isfinite(x) or x <= 0f64 {{ return sqrt(x) }}
  let a = frexp(x)
  let odd = a[1] & 1i32
  let scaled = odd == 1i32 ? a[0] * 2f64 : a[0]
  let m = sqrt(scaled)
  let rest = fma(-m, m, scaled)
  let above = rest > 0f64
  let below = rest < 0f64
  let rounded = {_towards(direction)}
  return ldexp(rounded, (a[1] - odd) // 2i32)
}}""",
    )


NARROW = {d: _narrow(d) for d in _DIRECTIONS}
DIVIDE = {d: _divide(d) for d in _DIRECTIONS}
ROOT = {d: _root(d) for d in _DIRECTIONS}

libdevice = types.SimpleNamespace()


def _add(name, parameters, text, *needs):
    setattr(libdevice, name, Form(f"libdevice.{name}", parameters, text, needs=needs))


def _directed():
    """Adds arithmetic and conversions in each rounding direction. `rn` rounds to nearest, and is
    never fused with another operation."""
    for direction in _DIRECTIONS:
        one, two, zero = f"fma_{direction}(f64({{x}}), 1f64, f64({{y}}))", f"fma_{direction}(f64({{x}}), f64({{y}})", _zero(direction)
        _add(f"dadd_{direction}", "x y", one)
        _add(f"dmul_{direction}", "x y", f"{two}, {zero})")
        narrow, divide, root = NARROW[direction], DIVIDE[direction], ROOT[direction]
        narrowed = f"{{{narrow.__name__}}}"
        _add(f"ddiv_{direction}", "x y", f"{{{divide.__name__}}}(f64({{x}}), f64({{y}}))", divide)
        _add(f"drcp_{direction}", "x", f"{{{divide.__name__}}}(1f64, f64({{x}}))", divide)
        _add(f"dsqrt_{direction}", "x", f"{{{root.__name__}}}(f64({{x}}))", root)
        _add(f"fadd_{direction}", "x y", f"fma_{direction}(f32({{x}}), 1f32, f32({{y}}))")
        _add(f"fsub_{direction}", "x y", f"fma_{direction}(f32({{x}}), 1f32, -f32({{y}}))")
        _add(f"fmul_{direction}", "x y", f"fma_{direction}(f32({{x}}), f32({{y}}), {zero.replace('f64', 'f32')})")
        # An exact quotient or root of float32 numbers is either a float32 or far from every float32. Rounding the exact
        # result to float64 therefore never moves it past a float32.
        _add(f"fdiv_{direction}", "x y", f"{narrowed}(f64(f32({{x}})) / f64(f32({{y}})))", narrow)
        _add(f"frcp_{direction}", "x", f"{narrowed}(1f64 / f64(f32({{x}})))", narrow)
        _add(f"fsqrt_{direction}", "x", f"{narrowed}(sqrt(f64(f32({{x}}))))", narrow)
        _add(f"fma_{direction}", "x y z", f"fma_{direction}(f64({{x}}), f64({{y}}), f64({{z}}))")
        _add(f"fmaf_{direction}", "x y z", f"fma_{direction}(f32({{x}}), f32({{y}}), f32({{z}}))")
        _add(f"double2float_{direction}", "d", f"{narrowed}(f64({{d}}))", narrow)
        for name, kind in (("int", "i32"), ("uint", "u32")):
            _add(f"{name}2float_{direction}", "in", f"{narrowed}(f64({kind}({{in}})))", narrow)
        for name, kind in (("ll", "i64"), ("ull", "u64")):
            wide = f"fma_{direction}(f64({kind}({{l}}) >> 32{kind}), 4294967296f64, f64({kind}({{l}}) & 4294967295{kind}))"
            _add(f"{name}2double_{direction}", "l", wide)
            _add(f"{name}2float_{direction}", "l", f"{narrowed}({wide})", narrow)


def _nearest():
    for kind, letter, end in (("f64", "d", ""), ("f32", "f", "f")):
        x, y = f"{kind}({{x}})", f"{kind}({{y}})"
        _add(f"{letter}add_rn", "x y", f"fma({x}, 1{kind}, {y})")
        _add(f"{letter}mul_rn", "x y", f"fma({x}, {y}, -0{kind})")
        _add(f"{letter}div_rn", "x y", f"quotient({x}, {y})")
        _add(f"{letter}rcp_rn", "x", f"quotient(1{kind}, {x})")
        _add(f"{letter}sqrt_rn", "x", f"sqrt({x})")
        _add(f"fma{end}_rn", "x y z", f"fma({x}, {y}, {kind}({{z}}))")
    _add("fsub_rn", "x y", "fma(f32({x}), 1f32, -f32({y}))")
    _add("frsqrt_rn", "x", "f32(1f64 / sqrt(f64(f32({x}))))")
    _add("double2float_rn", "d", "f32(f64({d}))")
    _add("int2double_rn", "i", "f64(i32({i}))")
    _add("uint2double_rn", "i", "f64(u32({i}))")
    for name, kind, parameter in (("int", "i32", "in"), ("uint", "u32", "in"), ("ll", "i64", "l"), ("ull", "u64", "l")):
        _add(f"{name}2float_rn", parameter, f"f32({kind}({{{parameter}}}))")
    for name, kind in (("ll", "i64"), ("ull", "u64")):
        _add(f"{name}2double_rn", "l", f"f64({kind}({{l}}))")


def _to_integers():
    rounding = {"rd": "floor", "rn": "rint", "ru": "ceil", "rz": "trunc"}
    for source, kind in (("double", "f64"), ("float", "f32")):
        for name, result in (("int", "i32"), ("uint", "u32"), ("ll", "i64"), ("ull", "u64")):
            for direction, word in rounding.items():
                _add(f"{source}2{name}_{direction}", "f", f"{result}({word}({kind}({{f}})))")


# Names of functions of floats. The float64 function has the listed name, and the float32 function
# has the suffix f.
_OF_ONE = """sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 exp10 expm1 log log2 log10 log1p logb sqrt rsqrt
cbrt rcbrt erf erfc erfinv erfcinv erfcx normcdf normcdfinv tgamma lgamma floor ceil trunc round rint j0 j1 y0 y1 sinpi cospi
sincos sincospi modf frexp""".split()
_OF_TWO = "pow atan2 hypot fmod remainder copysign nextafter fdim remquo".split()


def _floats():
    for kind, end in (("f32", "f"), ("f64", "")):
        x, y = f"{kind}({{x}})", f"{kind}({{y}})"
        for name in _OF_ONE:
            _add(name + end, "x", f"{name}({x})")
        for name in _OF_TWO:
            _add(name + end, "x y", f"{name}({x}, {y})")
        _add("fma" + end, "x y z", f"fma({x}, {y}, {kind}({{z}}))")
        _add("fmax" + end, "x y", f"max({x}, {y})")
        _add("fmin" + end, "x y", f"min({x}, {y})")
        _add("fabs" + end, "f", f"abs({kind}({{f}}))")
        _add("nearbyint" + end, "x", f"rint({x})")
        _add("llrint" + end, "x", f"lrint({x})")
        _add("llround" + end, "x", f"lround({x})")
        _add("ilogb" + end, "x", f"ilogb({x})")
        _add("powi" + end, "x y", f"pow({x}, {kind}(i32({{y}})))")
        for name in ("ldexp", "scalbn"):
            _add(name + end, "x y", f"ldexp({x}, i32({{y}}))")
        for name in ("jn", "yn"):
            _add(name + end, "n x", f"{name}(i32({{n}}), {x})")
        for name, test in (("isinf", "isinf"), ("isnan", "isnan"), ("signbit", "signbit")):
            _add(name + (end or "d"), "x", f"i32({test}({x}))")
    _add("nan", "tagp", "bitcast(f64, 9221120237041090560u64 | u64({tagp}) & 2251799813685247u64)")
    _add("nanf", "tagp", "bitcast(f32, u32(2143289344u32 | u32({tagp}) & 4194303u32))")
    _add("finitef", "x", "i32(isfinite(f32({x})))")
    _add("isfinited", "x", "i32(isfinite(f64({x})))")
    _add("saturatef", "x", "saturate(f32({x}))")
    for name in ("sin", "cos", "tan", "exp", "exp10", "log", "log2", "log10"):
        _add(f"fast_{name}f", "x", f"fast_{name}(f32({{x}}))")
    _add("fast_sincosf", "x", "(fast_sin(f32({x})), fast_cos(f32({x})))")
    _add("fast_powf", "x y", "fast_pow(f32({x}), f32({y}))")
    _add("fast_fdividef", "x y", "fast_divide(f32({x}), f32({y}))")


def _bits():
    for name, source, result in (
        ("double_as_longlong", "f64", "i64"),
        ("longlong_as_double", "i64", "f64"),
        ("float_as_int", "f32", "i32"),
        ("int_as_float", "i32", "f32"),
    ):
        _add(name, "x", f"bitcast({result}, {source}({{x}}))")
    _add("double2hiint", "d", "i32(u32(bitcast(u64, f64({d})) >> 32u64))")
    _add("double2loint", "d", "i32(u32(bitcast(u64, f64({d})) & 4294967295u64))")
    _add("hiloint2double", "x y", "bitcast(f64, u64(u32({x})) << 32u64 | u64(u32({y})))")
    _add("float2half_rn", "f", "bitcast(i16, f16(f32({f})))")
    _add("half2float", "h", "f32(bitcast(f16, i16({h})))")


def _integers():
    for end, kind in (("", "i32"), ("ll", "i64")):
        for name in ("clz", "ffs", "popc"):
            _add(name + end, "x", f"i32({name}({kind}({{x}})))")
        _add("brev" + end, "x", f"brev({kind}({{x}}))")
    _add("abs", "x", "i32(abs(i32({x})))")
    _add("llabs", "x", "abs(i64({x}))")
    for prefix, kind in (("", "i32"), ("u", "u32"), ("ll", "i64"), ("ull", "u64")):
        for name in ("max", "min"):
            _add(prefix + name, "x y", f"{name}({kind}({{x}}), {kind}({{y}}))")
    for prefix, kind, wide in (("", "i32", "i64"), ("u", "u32", "u64")):
        x, y = f"{wide}({kind}({{x}}))", f"{wide}({kind}({{y}}))"
        _add(f"{prefix}hadd", "x y", f"{kind}(({x} + {y}) >> 1{wide})")
        _add(f"{prefix}rhadd", "x y", f"{kind}(({x} + {y} + 1{wide}) >> 1{wide})")
        _add(f"{prefix}mulhi", "x y", f"mulhi({kind}({{x}}), {kind}({{y}}))")
        _add(f"{prefix}mul64hi", "x y", f"mulhi({wide}({{x}}), {wide}({{y}}))")
        product = " * ".join(f"{wide}({kind}({kind}({{{p}}}) << 8{kind}) >> 8{kind})" for p in "xy")
        _add(f"{prefix}mul24", "x y", f"{kind}({product})")
    _add("byte_perm", "a b c", "i32(byte_perm(u32({a}), u32({b}), u32({c})))")
    _add("sad", "x y z", "u32(u32(abs(i64(i32({x})) - i64(i32({y})))) + u32({z}))")
    _add("usad", "x y z", "u32(u32(abs(i64(u32({x})) - i64(u32({y})))) + u32({z}))")


for _fill in (_directed, _nearest, _to_integers, _floats, _bits, _integers):
    _fill()

globals().update(vars(libdevice))  # allows `from kjit.cuda.libdevice import fast_sinf`

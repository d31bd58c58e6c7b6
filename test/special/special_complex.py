"""The functions of complex numbers by another way: Python's cmath, which has the values of C's Annex G at zeros, infinities and NaNs; where it raises, or Annex G has
been corrected since, the values are written down here. A reference gives the two parts and which of them may have either sign."""
import cmath
import math

INF, NAN = math.inf, math.nan
TURNED = {"sin": "sinh", "tan": "tanh", "asin": "asinh", "atan": "atanh"}  # f(z) = g(i z) / i
NAMES = ("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh")

# function, kind of x, kind of y (0: zero, f: other finite numbers, i: infinite, n: NaN): the parts whose sign Annex G leaves open
FREE_SIGNS = {
    ("exp", "i", "i"): "xy", ("exp", "i", "n"): "xy", ("cosh", "0", "i"): "y", ("cosh", "0", "n"): "y", ("cosh", "i", "i"): "x", ("cosh", "n", "0"): "y",
    ("sinh", "0", "i"): "x", ("sinh", "0", "n"): "x", ("sinh", "i", "i"): "x", ("sinh", "i", "n"): "x", ("tanh", "i", "i"): "y", ("tanh", "i", "n"): "y",
    ("sqrt", "i", "n"): "y", ("asinh", "n", "i"): "x", ("acos", "i", "n"): "y", ("acosh", "0", "n"): "y", ("atanh", "n", "i"): "x",
}


def kind(x):
    return "n" if math.isnan(x) else "i" if math.isinf(x) else "0" if x == 0 else "f"


def written_down(name, z):
    """Arguments that cmath rejects, and two corrections of Annex G (C17's acosh(0 + NaN i), C23's tanh of 0 + infinity
    i and 0 + NaN i)."""
    x, y = z.real, z.imag
    kinds = kind(x) + kind(y)
    if name in ("log", "log10") and kinds == "00":
        return -INF, math.atan2(y, x) / (math.log(10) if name == "log10" else 1)
    if name == "atanh" and kinds == "f0":
        return math.copysign(INF, x), y
    if name == "tanh" and kinds in ("0i", "0n"):
        return x, NAN
    if name == "acosh" and kinds == "0n":
        return NAN, math.pi / 2
    if kinds == "ii":
        return {"exp": x, "sinh": x, "cosh": INF}[name], NAN
    if kinds == "0i" and name != "exp":
        return {"sinh": (x, NAN), "cosh": (NAN, 0.0)}[name]
    assert kinds in ("fi", "0i"), (name, z)
    return NAN, NAN


def reference(name, z):
    if name in TURNED:
        (x, y), free = reference(TURNED[name], complex(-z.imag, z.real))
        return (y, -x), free.translate(str.maketrans("xy", "yx"))
    if name == "cos":
        return reference("cosh", complex(-z.imag, z.real))
    kinds = kind(z.real), kind(z.imag)
    free = FREE_SIGNS.get((name, *kinds), "")
    if (name == "tanh" and kinds[0] == "0" and kinds[1] in "in") or (name == "acosh" and kinds == ("0", "n")):
        return written_down(name, z), free
    try:
        value = getattr(cmath, name)(z)
    except ValueError:
        return written_down(name, z), free
    return (value.real, value.imag), free


def free_signs(text, z):
    """The parts of an expression of z that may have either sign from one way of computing to the next. A power -2 is the square of 1 / z; where z has an infinite part and a NaN,
    Annex G's quotient is of two zeros, of which one has the NaN's sign; after an infinity below 0 the square's imaginary zero has it too."""
    name = text.partition("(")[0]
    if name in NAMES:
        return reference(name, z)[1]
    is_open = text == "z ** -2" and (math.isnan(z.real) and z.imag == -INF or z.real == -INF and math.isnan(z.imag))
    return "y" if is_open else ""


def agrees(got, want, is_free, tolerance):
    """Returns whether a part is correct: exactly at zeros, infinities and NaNs, which must have the sign unless it is
    free."""
    if math.isnan(want):
        return math.isnan(got)
    if is_free:
        got, want = abs(got), abs(want)
    if want == 0 or math.isinf(want):
        return got == want and math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= tolerance * abs(want)

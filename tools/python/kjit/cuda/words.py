"""The meaning of numba.cuda's names in kernels, as templates of kernel IR."""

import ast
import types

from ..frontend import words
from ..frontend.words import ArrayForm, Form, Text

_ATOMICS = {
    "add": "add",
    "sub": "sub",
    "max": "max",
    "min": "min",
    "nanmax": "nanmax",
    "nanmin": "nanmin",
    "and_": "and",
    "or_": "or",
    "xor": "xor",
    "inc": "inc",
    "dec": "dec",
    "exch": "exch",
}


class ConstantArray(Form):
    """const.array_like(a), where a is a NumPy array that is known when the kernel is compiled."""

    def expand(self, emitter, call):
        bound = self.bind(call)
        if isinstance(bound, str):
            raise emitter.error(call, bound)
        value = emitter.static_value(bound["ary"])
        if type(value).__module__ != "numpy" or not hasattr(value, "shape"):
            raise emitter.error(
                bound["ary"],
                "const.array_like() takes an array of NumPy that is a global or belongs to the "
                "function around the kernel",
            )
        return emitter.known(value, bound["ary"])


class PointedArray(Form):
    """carray(p, shape, dtype) and farray: the memory at a pointer as an array in C or F order."""

    def __init__(self, name, is_fortran):
        super().__init__(name, "ptr shape dtype=None", "", self.__doc__)
        self.is_fortran = is_fortran

    def expand(self, emitter, call):
        bound = self.bind(call)
        if isinstance(bound, str):
            raise emitter.error(call, bound)
        pointer, shape, dtype = bound["ptr"], bound["shape"], bound["dtype"]
        extents = list(shape.elts if isinstance(shape, ast.Tuple) else [shape])
        if self.is_fortran:
            extents.reverse()
        own = emitter.expression(pointer)
        is_given = isinstance(dtype, ast.AST) and emitter.static_value(dtype) is not None
        kind = [emitter.type_text(emitter.static_value(dtype), dtype)] if is_given else ["dtype(", *own, "[0])"]
        parts = [emitter.source.place(call), "view(", *kind, "["]
        for i, extent in enumerate(extents):
            parts += [", "] * (i > 0) + emitter.expression(extent)
        return [*parts, "], ", *own, ")", ".T" * (self.is_fortran and len(extents) > 1)]


carray, farray = PointedArray("carray", False), PointedArray("farray", True)


class Atomic(Form):
    """An atomic operation on an array element, or on the real or imaginary part of a complex
    element."""

    def expand(self, emitter, call):
        bound = self.bind(call)
        array = None if isinstance(bound, str) else bound["ary"]
        if not isinstance(array, ast.Attribute) or array.attr not in ("real", "imag"):
            return super().expand(emitter, call)
        part = Form(self.name, " ".join(self.parameters), self.text.replace("[{index}]", f"[{{index}}].{array.attr}"))
        rest = {name: node for name, node in bound.items() if isinstance(node, ast.AST)}
        rest["ary"] = array.value
        keywords = [ast.keyword(arg=name, value=node) for name, node in rest.items()]
        return part.expand(emitter, ast.copy_location(ast.Call(call.func, [], keywords), call))


def _keeps_nan(word):
    """Returns the source of an atomic maximum or minimum that keeps a NaN in the array, as Python's
    max(a, b) does. No atomic operation turns a number into NaN, so one test before the operation is
    enough."""
    return Text(
        f"atomic_{word}_of",
        f"""
func atomic_{word}_of(a, index, value) @numba {{
  if is_float(dtype(a[index])) {{
    let old = a[index]
    if isnan(f64(old)) {{ return old }}
  }}
  return atomic_{word}(a[index], dtype(a[index])(value))
}}""",
    )


class Extremum(Atomic):
    """An atomic maximum or minimum that keeps a NaN in the array."""

    def __init__(self, name, parameters, text):
        super().__init__(name, parameters, text)
        self.function = _keeps_nan(name.rpartition(".")[2])

    def expand(self, emitter, call):
        bound = self.bind(call)
        if isinstance(bound, str) or isinstance(bound["ary"], ast.Attribute) and bound["ary"].attr in ("real", "imag"):
            return super().expand(emitter, call)
        symbol = emitter.builder.function(self.function)
        emitter.used.add(symbol)
        index = bound["index"]
        if isinstance(index, ast.Tuple) and len(index.elts) == 1:
            index = index.elts[0]
        at = emitter.index(index) if not isinstance(index, ast.Tuple) else emitter.expression(index)
        array, value = emitter.expression(bound["ary"]), emitter.expression(bound["value"])
        return [emitter.source.place(call), f"{symbol}(", *array, ", ", *at, ", ", *value, ")"]


atomic = types.SimpleNamespace(
    **{
        name: (Extremum if name in ("max", "min") else Atomic)(
            f"cuda.atomic.{name}", "ary index value", f"atomic_{word}({{ary}}[{{index}}], dtype({{ary}}[{{index}}])({{value}}))"
        )
        for name, word in _ATOMICS.items()
    }
)
atomic.compare_and_swap = Form(
    "cuda.atomic.compare_and_swap", "ary old val", "atomic_cas({ary}[0], dtype({ary}[0])({old}), dtype({ary}[0])({val}))"
)
atomic.cas = Form(
    "cuda.atomic.cas", "ary index old val", "atomic_cas({ary}[{index}], dtype({ary}[{index}])({old}), dtype({ary}[{index}])({val}))"
)
shared = types.SimpleNamespace(array=ArrayForm("cuda.shared.array", "shared"))
local = types.SimpleNamespace(array=ArrayForm("cuda.local.array", "local"))
const = types.SimpleNamespace(array_like=ConstantArray("cuda.const.array_like", "ary", ""))

_ALL_LANES = "u32(4294967295)"
_FORMS = {
    "grid": ("ndim", "grid({ndim})"),
    "gridsize": ("ndim", "gridsize({ndim})"),
    "syncthreads": ("", "syncthreads()"),
    "syncthreads_count": ("predicate", "syncthreads_count({predicate} != 0)"),
    "syncthreads_and": ("predicate", "i32(syncthreads_and({predicate} != 0))"),
    "syncthreads_or": ("predicate", "i32(syncthreads_or({predicate} != 0))"),
    "syncwarp": (f"mask={_ALL_LANES}", "syncwarp(u32({mask}))"),
    "threadfence": ("", "threadfence()"),
    "threadfence_block": ("", "threadfence_block()"),
    "threadfence_system": ("", "threadfence_system()"),
    "shfl_sync": ("mask value src_lane", "shfl_sync(u32({mask}), {value}, i32({src_lane}))"),
    "shfl_up_sync": ("mask value delta", "shfl_up_sync(u32({mask}), {value}, i32({delta}))"),
    "shfl_down_sync": ("mask value delta", "shfl_down_sync(u32({mask}), {value}, i32({delta}))"),
    "shfl_xor_sync": ("mask value lane_mask", "shfl_xor_sync(u32({mask}), {value}, i32({lane_mask}))"),
    "all_sync": ("mask predicate", "all_sync(u32({mask}), {predicate} != 0)"),
    "any_sync": ("mask predicate", "any_sync(u32({mask}), {predicate} != 0)"),
    "eq_sync": ("mask predicate", "eq_sync(u32({mask}), {predicate} != 0)"),
    "ballot_sync": ("mask predicate", "ballot_sync(u32({mask}), {predicate} != 0)"),
    "match_any_sync": ("mask value", "match_any_sync(u32({mask}), {value})"),
    "match_all_sync": ("mask value", "match_all_sync(u32({mask}), {value})"),
    "activemask": ("", "activemask()"),
    "lanemask_lt": ("", "lanemask_lt()"),
    "nanosleep": ("ns", "nanosleep(u32({ns}))"),
    "literal_unroll": ("items", "{items}"),
    "popc": ("x", "popc({x})"),
    "brev": ("x", "brev({x})"),
    "clz": ("x", "clz({x})"),
    "ffs": ("x", "ffs({x})"),
    "cbrt": ("x", "cbrt({x})"),
    "fma": ("a b c", "fma({a}, {b}, {c})"),
    "selp": ("a b c", "select({a}, {b}, {c})"),
    "ldca": ("array index", "ldca({array}[{index}])"),
    "ldcg": ("array index", "ldcg({array}[{index}])"),
    "ldcs": ("array index", "ldcs({array}[{index}])"),
    "ldlu": ("array index", "ldlu({array}[{index}])"),
    "ldcv": ("array index", "ldcv({array}[{index}])"),
    "stcg": ("array index value", "stcg({array}[{index}], {value})"),
    "stcs": ("array index value", "stcs({array}[{index}], {value})"),
    "stwb": ("array index value", "stwb({array}[{index}], {value})"),
    "stwt": ("array index value", "stwt({array}[{index}], {value})"),
}
FORMS = {name: Form(f"cuda.{name}", *row) for name, row in _FORMS.items()}
FORMS |= {name: words.LiteralForm(f"cuda.{name}", *_FORMS[name]) for name in ("grid", "gridsize")}
PLACES = {name: words.BUILTINS[name] for name in ("threadIdx", "blockIdx", "blockDim", "gridDim", "laneid", "warpsize")}

_BINARY_HALF = {
    "hadd": "+",
    "hsub": "-",
    "hmul": "*",
    "hdiv": "/",
    "heq": "==",
    "hne": "!=",
    "hge": ">=",
    "hgt": ">",
    "hle": "<=",
    "hlt": "<",
}
_COMPARISONS = ("heq", "hne", "hge", "hgt", "hle", "hlt")
_UNARY_HALF = {
    "habs": "abs",
    "hsin": "sin",
    "hcos": "cos",
    "hlog": "log",
    "hlog2": "log2",
    "hlog10": "log10",
    "hexp": "exp",
    "hexp2": "exp2",
    "hexp10": "exp10",
    "hsqrt": "sqrt",
    "hrsqrt": "rsqrt",
    "hfloor": "floor",
    "hceil": "ceil",
    "hrint": "rint",
    "htrunc": "trunc",
}
fp16 = types.SimpleNamespace(
    **{n: Form(f"cuda.fp16.{n}", "a b", f"(f16({{a}}) {word} f16({{b}}))") for n, word in _BINARY_HALF.items()},
    **{n: Form(f"cuda.fp16.{n}", "a", f"{word}(f16({{a}}))") for n, word in _UNARY_HALF.items()},
    hneg=Form("cuda.fp16.hneg", "a", "(-f16({a}))"),
    hrcp=Form("cuda.fp16.hrcp", "a", "(f16(1) / f16({a}))"),
    hfma=Form("cuda.fp16.hfma", "a b c", "fma(f16({a}), f16({b}), f16({c}))"),
    hmax=Form("cuda.fp16.hmax", "a b", "max(f16({a}), f16({b}))"),
    hmin=Form("cuda.fp16.hmin", "a b", "min(f16({a}), f16({b}))"),
)

for _name in _COMPARISONS:
    getattr(fp16, _name).is_truth = True

"""hasattr and getattr with a name that is known at compile time. The compiler decides them by the value type."""

import ast
import functools
import types

from .. import _records
from . import static, whole_arrays, words

_OF_ARRAYS = frozenset("shape strides size ndim T dtype itemsize nbytes flat flags ctypes".split()) | whole_arrays.METHODS
_OF_ALL = frozenset("real imag conj conjugate".split())
_WITH_DEFAULT = frozenset("shape size ndim T".split())  # array attributes that the kernel IR has


def call(emitter, node, thing):
    """Returns the text for a call of hasattr or getattr."""
    name = emitter.static_value(node.args[1]) if len(node.args) > 1 else static.UNKNOWN
    counts = (2,) if thing is hasattr else (2, 3)
    if not isinstance(name, str) or len(node.args) not in counts or node.keywords:
        raise emitter.error(node, f"{thing.__name__}() takes a value and the name of an attribute, which must be known at compile time")
    attribute = ast.copy_location(ast.Attribute(node.args[0], name, ast.Load()), node)
    if thing is getattr and len(node.args) == 2:
        return emitter.expression(attribute)
    known = _known(emitter, node.args[0], name)
    if thing is hasattr and known is not None:
        return [emitter.source.place(node), "true" if known else "false"]
    value = emitter.expression(node.args[0])
    if thing is hasattr:
        return [emitter.source.place(node), f"{emitter.use(_test(name))}(", *value, ")"]
    if known is not None or name in _OF_ALL:
        return emitter.expression(node.args[2] if known is False else attribute)
    if name in _OF_ARRAYS - _WITH_DEFAULT:
        raise emitter.error(node, f"getattr() with a default does not support the array attribute `{name}`")
    return [emitter.source.place(node), f"{emitter.use(_choice(name))}(", *value, ", ", *emitter.expression(node.args[2]), ")"]


def _known(emitter, node, name):
    """Returns whether a value has the attribute if this is known before types are inferred, otherwise
    None."""
    value = emitter.static_value(node)
    if isinstance(value, (types.ModuleType, type)):
        return hasattr(value, name)
    shape = emitter.shape_of(node)
    return name in shape.fields if shape is not None and getattr(shape, "fields", None) else None


@functools.cache
def _test(name):
    """Returns the func that tests for an attribute. A record must have a field of this name: otherwise the func does not compile."""
    field = _records.field_name(name)
    if name in _OF_ARRAYS:
        body = "  return is_array(x) and not (is_struct(dtype(x)) and x.ndim == 0)"
    elif name in _OF_ALL:
        body = "  return not is_struct(dtype(x))"
    else:
        body = f"  if is_struct(dtype(x)) {{\n    let found = x.{field}\n    return true\n  }}\n  return false"
    return words.Text(f"has_{field}", f"\nfunc has_{field}(x) @numba {{\n  if is_tuple(x) {{ return false }}\n{body}\n}}")


@functools.cache
def _choice(name):
    field = _records.field_name(name)
    condition = "is_array(x)" if name in _WITH_DEFAULT else "is_struct(dtype(x))"
    test = f"  if is_tuple(x) {{ return default_value }}\n  if {condition} {{ return x.{field} }}\n  return default_value"
    return words.Text(f"get_{field}", f"\nfunc get_{field}(x, default_value) @numba {{\n{test}\n}}")

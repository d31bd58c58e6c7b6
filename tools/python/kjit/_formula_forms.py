"""Formulas that are more than an expression for each row: numexpr's reductions, and pandas' assignments
and variables. Blanks replace the parts that are cut out of a formula, so that the positions in errors
are positions in the user's text."""

import re

_ASSIGNED = re.compile(r"\s*(?:`([^`\n]+)`|([A-Za-z_]\w*))\s*=(?!=)")
_REDUCED = re.compile(r"\s*(sum|prod|min|max)\s*\(")
_AXIS = re.compile(r"\s*(?:axis\s*=\s*)?(-?\d+)\s*")
_STRING = r"\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`"
_PART = re.compile(rf"{_STRING}|[()\[\],]")
_VARIABLE = re.compile(rf"{_STRING}|(\bin\s*)?(?<![\w@])@([A-Za-z_]\w*)")


def assigned(formula):
    """Returns (the name of the column that a formula assigns to, the expression); the name is None if
    the formula is no assignment."""
    found = _ASSIGNED.match(formula)
    if not found:
        return None, formula
    return found[1] or found[2], " " * found.end() + formula[found.end() :]


def with_column(table, name, values):
    """Returns the table with a new or replaced column."""
    kind = type(table).__module__.partition(".")[0]
    if isinstance(table, dict):
        return {**table, name: values}
    if kind == "pandas":
        return table.assign(**{name: values})
    from .tables import of_arrow, of_polars

    if kind == "polars":
        import polars

        return of_polars.assign(table, {name: polars.Series(name, values)})
    if kind == "pyarrow":
        return of_arrow.assign(table, {name: values})
    raise TypeError(f"kjit.eval cannot add the column `{name}` to a table of type {type(table).__name__}")


def reduced(formula):
    """Returns (a reduction's name, its axis or None, the expression); the name is None if the
    formula as a whole is no reduction."""
    found = _REDUCED.match(formula)
    if not found:
        return None, None, formula
    depth, comma = 1, None
    for part in _PART.finditer(formula, found.end()):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(part[0], 0)
        if depth == 1 and part[0] == ",":
            comma = part.start() if comma is None else -1
        if depth == 0:
            break
    if depth or formula[part.end() :].strip() or comma == -1:
        return None, None, formula
    end = part.start()
    axis = _AXIS.fullmatch(formula, comma + 1, end) if comma is not None else None
    if comma is not None and axis is None:
        return None, None, formula  # not a reduction's arguments; the formula itself reports the error
    start, stop = found.end(), end if comma is None else comma
    return found[1], axis and int(axis[1]), " " * start + formula[start:stop]


def reduce(values, how, axis, out):
    """Reduces the results of all rows to one value. Nulls are left out."""
    import numpy

    if type(values).__module__.partition(".")[0] == "pyarrow":
        import pyarrow.compute

        if axis not in (None, 0):
            raise ValueError(f"kjit.eval: axis must be 0, not {axis}, because a column has one axis")
        return getattr(pyarrow.compute, {"prod": "product"}.get(how, how))(values)
    made = getattr(values, how)(**({} if axis is None else {"axis": axis}))
    if out is None:
        return numpy.asarray(made) if isinstance(values, numpy.ndarray) and made is not numpy.ma.masked else made
    numpy.copyto(out, made)
    return out


def variable(name, frame):
    """Returns the value of the caller's variable that a formula calls `@name`."""
    for names in (frame.f_locals, frame.f_globals):
        if name in names:
            return names[name]
    raise NameError(f"the formula has `@{name}`, but there is no variable `{name}`")


def with_constants(formula, frame):
    """Replaces `@` variables that hold strings, and lists after `in`, by literals."""

    def replaced(match):
        if match[2] is None:  # a string or a quoted name
            return match[0]
        value = variable(match[2], frame)
        if isinstance(value, str):
            return (match[1] or "") + _literal(match[2], value)
        if match[1] and not isinstance(value, (int, float)):
            items = value.tolist() if hasattr(value, "tolist") else list(value)
            if not items:
                raise ValueError(f"the formula has `in @{match[2]}`, but `{match[2]}` is empty")
            return f"{match[1]}({', '.join(_literal(match[2], item) for item in items)})"
        return match[0]

    return _VARIABLE.sub(replaced, formula)


def _literal(name, value):
    if isinstance(value, str):
        quote = next((q for q in "'\"" if q not in value), None)
        if quote is None or "\\" in value or not value.isprintable():
            raise ValueError(f"the formula has `@{name}`, whose string {value!r} cannot be written as a literal")
        return f"{quote}{value}{quote}"
    if isinstance(value, (bool, int, float)):
        return repr(value)
    raise TypeError(f"the formula has `@{name}` with a value of type {type(value).__name__}; a formula takes numbers and strings")

"""Prints arrays as NumPy does. Of a large array, only the elements that are shown are copied to the
host."""

import itertools

from .._errors import Error
from . import _engine


def _shown(x):
    """Returns a NumPy array that prints like x. Of a large array only the outer elements are
    filled."""
    import numpy

    if x.dtype.text == "bf16":
        x = _engine.cast(x, "f32")
    options = numpy.get_printoptions()
    if x.size <= options["threshold"]:
        return x.to_host()
    edge = options["edgeitems"]
    host = numpy.zeros(tuple(x.shape), x.dtype.dtype)  # memory pages that are never touched take up no memory
    parts = [(slice(None),) if n <= 2 * edge else (slice(edge), slice(-edge, None)) for n in x.shape]
    for at in itertools.product(*parts):
        host[at] = x[at].to_host()
    return host


def represent(self):
    """Returns a text such as array([1., 2.], dtype=float32), with the device if it is not the CPU."""
    import numpy

    try:
        shown = _shown(self)
    except Error as error:
        # the device may be lost; there must still be a text, because debuggers show arrays in this case, too
        return f"<kjit.Array {self.dtype.text}, shape {self.shape}, on {self.device}: {error.message}>"
    text = numpy.array2string(shown, separator=", ", prefix="array(")
    if not self.size and self.ndim != 1 or not self.size and self.shape != (0,):
        text = f"{text}, shape={tuple(self.shape)}"
    is_plain = self.dtype.text in ("i64", "f64", "c128", "bool") and self.size
    kind = "" if is_plain else f", dtype={_name(self)}"
    place = "" if self.device == "cpu" else f", device={self.device!r}"
    return f"array({text}{kind}{place})"


def _name(x):
    return "bfloat16" if x.dtype.text == "bf16" else x.dtype.name


def show(self):
    import numpy

    shown = _shown(self)
    return numpy.array2string(shown) if self.ndim else str(shown[()])


def formatted(self, specification):
    """Formats the number in an array without dimensions. Raises TypeError for a nonempty format of
    other arrays."""
    if not self.ndim:
        return format(self.item(), specification)
    if specification:
        raise TypeError(f"an array of the shape {tuple(self.shape)} has no format {specification!r}")
    return show(self)


def as_html(self):
    """Returns an HTML table for notebooks with the first and last elements of an array of one or
    two dimensions."""
    import html

    import numpy

    note = f"{_name(self)}, shape {tuple(self.shape)}, on {self.device}"
    if self.ndim not in (1, 2) or not self.size:
        return f"<pre>{html.escape(represent(self))}</pre>"
    options = numpy.get_printoptions()
    edge = options["edgeitems"]
    host = _shown(self).reshape(-1, self.shape[-1])
    rows, columns = (_places(n, edge) for n in host.shape)
    lines = []
    for i in rows:
        cells = "".join(f"<td>{html.escape(_cell(host, i, j))}</td>" for j in columns)
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table><p>{html.escape(note)}</p>"


def _places(extent, edge):
    """Returns the indices that are shown, with None for the gap."""
    return list(range(extent)) if extent <= 4 * edge else [*range(edge), None, *range(extent - edge, extent)]


def _cell(host, i, j):
    return "\u2026" if i is None or j is None else str(host[i, j])

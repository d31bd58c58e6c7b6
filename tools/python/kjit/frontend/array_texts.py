"""Funcs of the kernel IR for statements and expressions on whole arrays: broadcasting, assignment,
positions and views.

A func that depends on the number of dimensions lists the cases up to the maximum rank of 8, and the
compiler keeps the case that matches the array's type. In these funcs, `at` is an element's position
as in `for at in range(a.shape)`: an integer for one dimension, otherwise a tuple.
"""

import functools

from .words import Text

MOST_DIMENSIONS = 8


def _by_rank(name, parameters, rank, case, least=0, attribute=""):
    """Returns the Text of a func that returns case(n) if the expression `rank` equals n."""
    lines = [f"  if {rank} == {n} {{ return {case(n)} }}" for n in range(least, MOST_DIMENSIONS)]
    lines.append(f"  return {case(MOST_DIMENSIONS)}")
    return f"\nfunc {name}({parameters}){attribute} {{\n" + "\n".join(lines) + "\n}"


def _tuple(items):
    items = list(items)
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


# ---- elements and shapes ----

# The index along dimension k of x for the element that broadcasting assigns to `at`.
_INDEX = Text(
    "array_index",
    """
func array_index(x, at, const k) {
  if not is_tuple(at) { return k + 1 < x.ndim or x.shape[k] == 1 ? 0 : at }
  if k + len(at) < x.ndim { return 0 }
  return x.shape[k] == 1 ? 0 : at[k + len(at) - x.ndim]
}""",
)
# The element of x at a position in the shape to which x is broadcast. A value that is not an array
# is its own element.
LOAD = Text(
    "array_load",
    """
func array_load(at, x) {
  if not is_array(x) { return x }
"""
    + "\n".join(
        f"  if x.ndim == {n} {{ return x[{', '.join(f'array_index(x, at, {k})' for k in range(n)) or '()'}] }}"
        for n in range(MOST_DIMENSIONS)
    )
    + f"\n  return x[{', '.join(f'array_index(x, at, {k})' for k in range(MOST_DIMENSIONS))}]\n}}",
    (_INDEX,),
)
SHAPE = Text("array_shape", "\nfunc array_shape(x) {\n  if is_array(x) { return x.shape }\n  return ()\n}")
# The common extent of two shapes in dimension k, or -1 if the extents do not broadcast. n is the
# larger number of dimensions of the two.
_EXTENT = Text(
    "array_extent",
    """
func array_extent(s, t, const k, const n) {
  if k < n - len(s) { return t[k - (n - len(t))] }
  if k < n - len(t) { return s[k - (n - len(s))] }
  let x = s[k - (n - len(s))]
  let y = t[k - (n - len(t))]
  return x == y or y == 1 ? x : x == 1 ? y : -1
}""",
)
_JOIN_TO = Text(
    "array_join_to",
    _by_rank(
        "array_join_to",
        "s, t, const n",
        "n",
        lambda n: _tuple(f"array_extent(s, t, {k}, {n})" for k in range(n)),
    ),
    (_EXTENT,),
)
# The shape to which two shapes broadcast.
JOIN = Text(
    "array_join",
    """
func array_join(s, t) {
  if len(s) < len(t) { return array_join_to(s, t, len(t)) }
  return array_join_to(s, t, len(s))
}""",
    (_JOIN_TO,),
)
IS_SHAPE = Text(
    "array_is_shape",
    """
func array_is_shape(s) {
  for i in range(len(s)) @static { if s[i] < 0 { return false } }
  return true
}""",
)
# Whether x can be broadcast to a shape. Surplus leading dimensions of x must have extent 1.
FITS = Text(
    "array_fits",
    """
func array_fits(x, s) {
  if not is_array(x) { return true }
  for i in range(x.ndim) @static {
    if i + len(s) < x.ndim { if x.shape[i] != 1 { return false } }
    else if x.shape[i] != 1 and x.shape[i] != s[i + len(s) - x.ndim] { return false }
  }
  return true
}""",
)
SIZE = Text(
    "array_size",
    """
func array_size(s) {
  var n = 1i64
  for i in range(len(s)) @static { n *= i64(s[i]) }
  return n
}""",
)
# The number of elements after dimension k of a shape: the product of the later extents.
_BEHIND = Text(
    "array_behind",
    """
func array_behind(s, const k) {
  var n = 1i64
  for i in range(len(s)) @static { if i > k { n *= i64(s[i]) } }
  return n
}""",
)
# The position of element k in row-major order. A negative k counts from the end.
POSITION = Text(
    "array_position",
    """
func array_position(s, k) {
  let n = i64(k) < 0 ? i64(k) + array_size(s) : i64(k)
  return array_position_of(s, n)
}""",
    (
        SIZE,
        Text(
            "array_position_of",
            _by_rank(
                "array_position_of",
                "s, n",
                "len(s)",
                lambda rank: "n"
                if rank == 1
                else _tuple(
                    (f"n // array_behind(s, {k})" if k == 0 else f"n // array_behind(s, {k}) % max(i64(s[{k}]), 1)")
                    for k in range(rank)
                ),
            ),
            (_BEHIND,),
        ),
    ),
)
# A position as a tuple, also for one dimension.
AS_TUPLE = Text("array_as_tuple", "\nfunc array_as_tuple(at) {\n  if is_tuple(at) { return at }\n  return (at,)\n}")

# ---- assignment ----

FILL = Text("array_fill", "\nfunc array_fill(r, load: func) @numba { for at in range(r.shape) { r[at] = load(at) } }")
FILL_PLAIN = Text("array_fill_plain", FILL.text.replace("array_fill", "array_fill_plain").replace(" @numba", ""))
_ADDRESS = Text(
    "array_start",
    """
func array_start(a) {
  for at in range(a.shape) { return bitcast(i64, pointer(a[at])) }
  return 0i64
}""",
)
# The lowest and the highest byte offset of an element from the first element.
_SPAN = Text(
    "array_span",
    """
func array_span(a) {
  var low = 0i64
  var high = 0i64
  for i in range(a.ndim) @static {
    let step = (i64(a.shape[i]) - 1) * i64(a.strides[i]) * sizeof(dtype(a))
    if step < 0 { low += step } else { high += step }
  }
  return low, high
}""",
)
# Whether the addresses of both arrays ascend in row-major order with the same strides, as in a
# block of a row-major array.
_IS_ORDERED = Text(
    "array_is_ordered",
    """
func array_is_ordered(r, x) {
  if x.ndim != r.ndim or sizeof(dtype(x)) != sizeof(dtype(r)) { return false }
  for i in range(r.ndim) @static {
    if x.shape[i] != r.shape[i] { return false }
    if x.strides[i] != r.strides[i] and r.shape[i] != 1 { return false }
    if i > 0 { if r.strides[i] < 0 { return false } }
    if i + 1 < r.ndim { if r.strides[i] < i64(r.shape[i + 1]) * r.strides[i + 1] { return false } }
  }
  return true
}""",
)
# The number of elements that must be held back before they are stored, so that x is read before r
# is overwritten: (for stores from first to last, for stores from last to first).
REACH = Text(
    "array_reach",
    """
func array_reach(r, x) {
  if not is_array(x) { return 0i64, 0i64 }
  let n = array_size(r.shape)
  if n == 0 or array_size(x.shape) == 0 { return 0i64, 0i64 }
  let rs, re = array_span(r)
  let xs, xe = array_span(x)
  let distance = array_start(x) - array_start(r)
  if distance + xs > re + sizeof(dtype(r)) - 1 or distance + xe + sizeof(dtype(x)) - 1 < rs { return 0i64, 0i64 }
  if not array_is_ordered(r, x) { return n, n }
  if distance == 0 { return 0i64, 0i64 }
  if r.ndim == 0 { return n, n }
  let stride = i64(r.strides[0]) * sizeof(dtype(r))
  if stride == 0 { return n, n }
  let reach = (abs(distance) // abs(stride) + 1) * array_behind(r.shape, 0)
  if (distance > 0) == (stride > 0) { return 0i64, min(reach, n) }
  return min(reach, n), 0i64
}""",
    (SIZE, _SPAN, _ADDRESS, _IS_ORDERED, _BEHIND),
)
LATER = Text("array_later", "\nfunc array_later(x, y) { return max(x[0], y[0]), max(x[1], y[1]) }")
# The number of bytes per thread for values that are held back until the elements that they replace
# have been read.
_WAITING = "(target == cpu ? 32768 : 1024)"
# Stores the elements in an order that reads no element after it was overwritten. Returns False if
# too many values would have to be held back.
ASSIGN = Text(
    "array_assign",
    """
func array_assign(r, load: func, reach) {
  if reach[0] == 0 {
    array_fill(r, load)
    return true
  }
  return array_assign_late(r, load, reach)
}""",
    (
        FILL,
        Text(
            "array_assign_late",
            f"""
func array_assign_late(r, load: func, reach) @numba {{
  local waiting: dtype(r)[{_WAITING} // sizeof(dtype(r))]
  let n = array_size(r.shape)
  let is_forward = reach[0] <= reach[1]
  let late = min(reach[0], reach[1])
  if late > len(waiting) {{ return false }}
  if late == 0 {{
    for k in range(n) {{ r[array_position(r.shape, n - 1 - k)] = load(array_position(r.shape, n - 1 - k)) }}
    return true
  }}
  for k in range(n) {{
    let value = dtype(r)(load(array_position(r.shape, is_forward ? k : n - 1 - k)))
    if k >= late {{ r[array_position(r.shape, is_forward ? k - late : n - 1 - k + late)] = waiting[k % late] }}
    waiting[k % late] = value
  }}
  for k in range(max(n - late, 0i64), n) {{ r[array_position(r.shape, is_forward ? k : n - 1 - k)] = waiting[k % late] }}
  return true
}}""",
            (SIZE, POSITION),
        ),
    ),
)
ASSIGN_PLAIN = Text(
    "array_assign_plain",
    """
func array_assign_plain(r, load: func, reach) {
  if reach[0] == 0 {
    array_fill_plain(r, load)
    return true
  }
  return array_assign_late(r, load, reach)
}""",
    (FILL_PLAIN, *ASSIGN.needs[1:]),
)

# ---- assignment of tuples to arrays ----

# Whether a tuple, possibly nested, has one item for each element of r, or a single item for all
# elements.
TUPLE_FITS = Text(
    "array_tuple_fits",
    """
func array_tuple_fits(r, t) -> bool {
  if r.ndim == 0 { return false }
  if is_tuple(t[0]) {
    if len(t) != r.shape[0] { return false }
    for i in range(len(t)) @static { if not array_tuple_fits(r[i], t[i]) { return false } }
    return true
  }
  return len(t) == 1 or r.T.shape[0] == len(t)
}""",
)
ASSIGN_TUPLE = Text(
    "array_assign_tuple",
    """
func array_assign_tuple(r, t) @numba {
  for i in range(len(t)) @static {
    if is_tuple(t[i]) { array_assign_tuple(r[i], t[i]) }
    else if r.ndim == 1 {
      if len(t) == 1 { for at in range(r.shape) { r[at] = t[0] } } else { r[i] = t[i] }
    } else {
      let part = r.T[i].T
      if len(t) == 1 { for at in range(r.shape) { r[at] = t[0] } } else { for at in range(part.shape) { part[at] = t[i] } }
    }
  }
}""",
)


@functools.cache
def unpack(count):
    """Returns a func that converts an array with `count` elements to a tuple and returns a tuple
    unchanged."""
    name = f"unpack_{count}"
    return Text(
        name, f"\nfunc {name}(v) {{\n  if not is_array(v) {{ return v }}\n  return {_tuple(f'v[{i}]' for i in range(count))}\n}}"
    )


@functools.cache
def unpacks(count):
    """Returns a func that says whether a value has `count` items."""
    name = f"unpacks_{count}"
    return Text(name, f"\nfunc {name}(v) {{\n  if not is_array(v) {{ return true }}\n  return len(v) == {count}\n}}")


# ---- attributes that count bytes, as in NumPy ----

ITEM_BYTES = Text("array_itemsize", "\nfunc array_itemsize(a) @numba { return i64(sizeof(dtype(a))) }")
BYTES = Text("array_nbytes", "\nfunc array_nbytes(a) @numba { return i64(a.size) * i64(sizeof(dtype(a))) }")
STRIDES = Text(
    "array_strides",
    _by_rank(
        "array_strides",
        "a",
        "a.ndim",
        lambda n: _tuple(f"i64(a.strides[{k}]) * i64(sizeof(dtype(a)))" for k in range(n)),
    ),
)

# ---- views with computed strides ----


# A pointer to the first element in an array, or a null pointer if the array is empty: index 0 of an empty array would be out
# of bounds in a kernel that checks indices.
FIRST = Text(
    "array_first",
    """
func array_first(a) {
  for at in range(a.shape) { return pointer(a[at]) }
  return bitcast(dtype(a)*, 0u64)
}""",
)


def _view(n, element, pointer, extents, strides):
    if n == 0:
        return f"view({element}[1], {pointer})[0:1]"
    return f"view({element}[{', '.join(extents)}], {pointer}, {_tuple(strides)})"


def _part_view(part):
    def case(n):
        if n == 0:
            return "a"
        first = f"a[{', '.join('0' * n)}]"
        pointer = f"bitcast(dtype({first}.real)*, array_first(a))"
        pointer = f"pointer(view(dtype({first}.real)[2], {pointer})[{part}])"
        return _view(
            n,
            f"dtype({first}.real)",
            pointer,
            [f"a.shape[{k}]" for k in range(n)],
            [f"2 * a.strides[{k}]" for k in range(n)],
        )

    return case


# The real and the imaginary parts of an array, as a view, or of a number.
_REAL_VIEW = Text("array_real_view", _by_rank("array_real_view", "a", "a.ndim", _part_view(0)), (FIRST,))
_IMAG_VIEW = Text("array_imag_view", _by_rank("array_imag_view", "a", "a.ndim", _part_view(1)), (FIRST,))
REAL = Text(
    "array_real",
    """
func array_real(a) {
  if is_struct(dtype(a)) { return a.real }
  if is_array(a) {
    if is_complex(dtype(a)) { return array_real_view(a) }
    return a
  }
  if is_complex(dtype(a)) { return a.real }
  return a
}""",
    (_REAL_VIEW,),
)
IMAG = Text(
    "array_imag",
    """
func array_imag(a) {
  if is_struct(dtype(a)) { return a.imag }
  if is_array(a) {
    if is_complex(dtype(a)) { return array_imag_view(a) }
    return 0 * a  # does not compile, so that NumPy makes the array of zeros
  }
  if is_complex(dtype(a)) { return a.imag }
  return dtype(a)(0)
}""",
    (_IMAG_VIEW,),
)


@functools.cache
def view_as(kind):
    """Returns a func that views the bytes in an array as elements of another type. If the element
    size differs, the last dimension must be contiguous."""
    name = f"view_as_{kind}"

    def case(n):
        pointer = f"bitcast({kind}*, array_first(a))"
        if n == 0:
            return f"view({kind}[1], {pointer})[0:1]"
        if n == 1:
            return f"a.strides[0] == 1 ? view({kind}[a.size * sizeof(dtype(a)) // sizeof({kind})], {pointer}) : {strided(n, pointer)}"
        return strided(n, pointer)

    def strided(n, pointer):
        extents = [f"a.shape[{k}]" for k in range(n)]
        strides = [f"a.strides[{k}] * sizeof(dtype(a)) // sizeof({kind})" for k in range(n)]
        last = f"{extents[-1]} * sizeof(dtype(a)) // sizeof({kind})"
        same = f"sizeof(dtype(a)) == sizeof({kind})"
        return _view(n, kind, pointer, [*extents[:-1], last], [*strides[:-1], f"{same} ? a.strides[{n - 1}] : 1"])

    return Text(name, _by_rank(name, "a", "a.ndim", case), (FIRST,))


# Whether the bytes in an array can be elements of another size: the strides must be multiples of
# the size. If the sizes differ, the last dimension must be contiguous and hold a whole number of
# elements.
VIEW_FITS = Text(
    "array_view_fits",
    """
func array_view_fits(a, size) {
  let own = i64(sizeof(dtype(a)))
  if own == size { return true }
  for i in range(a.ndim) @static {
    if i + 1 < a.ndim { if i64(a.strides[i]) * own % size != 0 and a.shape[i] > 1 { return false } }
    else if a.strides[i] != 1 and a.shape[i] > 1 or i64(a.shape[i]) * own % size != 0 { return false }
  }
  return true
}""",
)


@functools.cache
def permuted(axes):
    """Returns a func that permutes an array's dimensions."""
    name = "permuted_" + "_".join(map(str, axes))
    n = len(axes)
    view = _view(n, "dtype(a)", "array_first(a)", [f"a.shape[{k}]" for k in axes], [f"a.strides[{k}]" for k in axes])
    return Text(name, f"\nfunc {name}(a) {{ return {view} }}", (FIRST,))


@functools.cache
def widened(before):
    """Returns a func that inserts a dimension of extent 1 after the first `before` dimensions."""
    name = f"widened_{before}"

    def case(n):
        extents = [f"a.shape[{k}]" for k in range(n)]
        strides = [f"a.strides[{k}]" for k in range(n)]
        return _view(
            n + 1,
            "dtype(a)",
            "array_first(a)",
            [*extents[:before], "1", *extents[before:]],
            [*strides[:before], "0", *strides[before:]],
        )

    lines = [f"  if a.ndim == {n} {{ return {case(n)} }}" for n in range(max(before, 0), MOST_DIMENSIONS - 1)]
    return Text(name, f"\nfunc {name}(a) {{\n" + "\n".join(lines) + f"\n  return {case(MOST_DIMENSIONS - 1)}\n}}", (FIRST,))


# The array with its dimensions in reverse order. A value that is not an array is returned
# unchanged.
REVERSED = Text("array_reversed", "\nfunc array_reversed(a) {\n  if is_array(a) { return a.T }\n  return a\n}")
RAVEL = Text("array_ravel", "\nfunc array_ravel(a) { return reshape(a, a.size) }")
RESHAPE = Text(
    "array_reshape",
    """
func array_reshape(a, n) @numba {
  if is_tuple(n) { return reshape(a, n) }
  return reshape(a, i64(n) < 0 ? i64(a.size) : i64(n))
}""",
)

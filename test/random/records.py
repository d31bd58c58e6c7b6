"""Structs in random kernels: declarations, their trees, the text of these, and their meaning as Python, where a struct or an array in one is a list that is copied when it is stored.

Numbers: ("member", base, path); ("rbits", type, struct), a struct's bits as a number. Bases: ("rname", name), ("relem", array, indices, form). Steps of a path: a field's name, or ("at", index).
Structs: ("rplace", base, path), ("rmake", struct, values), ("rzero", struct), ("rpick", condition, x, y, form), ("rcall", function, struct, number), ("rcast", struct, number), ("rsame", struct, struct of other fields),
("rload", base), loaded by an atomic.
Statements: rlet, rset (a number), rput (a struct), rarray (a field that is an array), rfill (a local or shared array), rtouch (a func that changes an element), ratomic, rshfl; rstore, rexch, rcas: atomics on a struct as a whole.
"""
import math

import numpy as np

import language
import values
from values import BYTES, FLOATS, INTEGERS, SCALARS

STATEMENTS = ("rlet", "rset", "rput", "rarray", "rfill", "rtouch", "ratomic", "rshfl", "rstore", "rexch", "rcas")
NUMPY = {"bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "bf16": np.uint16,
         "f32": np.float32, "f64": np.float64}


class Struct:
    """fields: (name, type, extents); the type is the name of a scalar or a Struct."""

    def __init__(self, name, fields, is_packed, align):
        self.name, self.fields, self.is_packed, self.align = name, fields, is_packed, align
        self.number = {f[0]: k for k, f in enumerate(fields)}
        offset, offsets, alignment = 0, [], align
        for _, t, extents in fields:
            own = 1 if is_packed else t.alignment if isinstance(t, Struct) else BYTES[t]
            alignment = max(alignment, own)
            offset = -(-offset // own) * own
            offsets.append(offset)
            offset += math.prod(extents) * (t.size if isinstance(t, Struct) else BYTES[t])
        self.alignment, self.size = alignment, -(-offset // alignment) * alignment
        self.leaves = [name for _, t, extents in fields for name in (t.leaves if isinstance(t, Struct) else [t]) * math.prod(extents)]
        # no gaps: the value equals its bits
        self.is_whole = "bool" not in self.leaves and sum(BYTES[t] for t in self.leaves) == self.size
        self.is_atomic = self.is_whole and self.size in (4, 8, 16) and alignment >= self.size
        formats = [(t.dtype if isinstance(t, Struct) else NUMPY[t], extents) for _, t, extents in fields]
        self.dtype = np.dtype({"names": [f[0] for f in fields], "formats": formats, "offsets": offsets, "itemsize": self.size})

    def text(self):
        attributes = (" @packed" if self.is_packed else "") + (f" @align({self.align})" if self.align > 1 else "")
        fields = [f"{n}: {type_text(t)}" + (f"[{', '.join(map(str, x))}]" if x else "") for n, t, x in self.fields]
        return f"struct {self.name}{attributes} {{ {'; '.join(fields)} }}"

    def __str__(self):
        return self.name


def type_text(t): return t.name if isinstance(t, Struct) else t


def fill(array, struct, numbers):
    """numbers(type, count): the numbers of a flat array."""
    for name, t, extents in struct.fields:
        part = array[name]
        if isinstance(t, Struct):
            fill(part, t, numbers)
        else:
            part[...] = numbers(t, part.size).reshape(part.shape)


def to_lists(array, struct, to_list):
    """Returns the elements of a flat array as lists of their fields."""
    columns = []
    for name, t, extents in struct.fields:
        flat = np.ascontiguousarray(array[name]).reshape(-1)
        values = to_lists(flat, t, to_list) if isinstance(t, Struct) else to_list(flat, t)
        for extent in reversed(extents):
            values = [values[k:k + extent] for k in range(0, len(values), extent)]
        columns.append(values)
    return [list(row) for row in zip(*columns)]


def literal_text(value, t):
    """Returns a number or struct in NumPy's representation."""
    if not isinstance(t, Struct):
        return values.literal_text(int.from_bytes(value.tobytes(), "little"), t)
    parts = lambda v, u, x: f"({', '.join(parts(e, u, x[1:]) for e in v)}{',' * (len(v) == 1)})" if x else literal_text(v, u)
    return f"{t.name}({', '.join(parts(value[n], u, x) for n, u, x in t.fields)})"


def python_text(value, t):
    """Returns the same in the representation of the evaluation."""
    if not isinstance(t, Struct):
        number = values.of_bits(int.from_bytes(value.tobytes(), "little"), t)
        return language.py_float(number) if t in FLOATS else f"({number!r})"
    parts = lambda v, u, x: f"[{', '.join(parts(e, u, x[1:]) for e in v)}]" if x else python_text(v, u)
    return f"[{', '.join(parts(value[n], u, x) for n, u, x in t.fields)}]"


def copied(v):
    return [copied(x) for x in v] if isinstance(v, list) else v


def with_member(v, keys, value):
    """Returns a copy in which one number is replaced."""
    result = inner = copied(v)
    for k in keys[:-1]:
        inner = inner[k]
    inner[keys[-1]] = value
    return result


def shape_code(t, extents=()):
    """Returns the types of all numbers, nested as the numbers are."""
    if extents:
        return f"[{', '.join([shape_code(t, extents[1:])] * extents[0])}]"
    return f"[{', '.join(shape_code(u, x) for _, u, x in t.fields)}]" if isinstance(t, Struct) else repr(t)


def record_bits(v, shape):
    bits, at = 0, 0
    for x, name in zip(leaves(v), leaves(shape)):
        bits |= values.bits_of(x, name) << at
        at += values.BITS[name]
    return bits


def record_of_bits(bits, shape):
    def take(part):
        nonlocal bits
        if isinstance(part, list):
            return [take(p) for p in part]
        own, bits = bits & (1 << values.BITS[part]) - 1, bits >> values.BITS[part]
        return values.of_bits(own, part)
    return take(shape)


def leaves(v):
    return [y for x in v for y in leaves(x)] if isinstance(v, list) else [v]


NAMES = {"copied": copied, "with_member": with_member, "record_bits": record_bits, "record_of_bits": record_of_bits}


class Record:
    """A name for a struct in the translator's environment."""

    def __init__(self, ty, py, is_var, is_known=False):
        self.ty, self.py, self.is_var, self.is_known = ty, py, is_var, is_known


class Records:
    """An array of structs. If it is divided among threads, a thread accesses only its own element."""

    def __init__(self, py, element, shape, is_own=False):
        self.py, self.element, self.shape, self.is_own = py, element, shape, is_own


# ---- text ----

def place_text(base, path, text_of):
    if base[0] == "rname":
        text = base[1]
    else:
        text = f"{base[1]}[{', '.join(text_of(i) for i in base[2])}]"
        if base[3]:
            text = f"pointer({text})" + ("" if path and isinstance(path[0], str) and base[3] == 1 else "[0]")
    k = 0
    while k < len(path):
        if isinstance(path[k], str):
            text += "." + path[k]
            k += 1
            continue
        end = k
        while end < len(path) and not isinstance(path[end], str):
            end += 1
        text += f"[{', '.join(text_of(step[1]) for step in path[k:end])}]"
        k = end
    return text


def number_text(e, text_of): return place_text(e[1], e[2], text_of) if e[0] == "member" else f"bitcast({e[1]}, {record_text(e[2], text_of)})"


def record_text(v, text_of):
    kind = v[0]
    if kind == "rplace":
        return place_text(v[1], v[2], text_of)
    if kind == "rmake":
        return f"{v[1].name}({', '.join(value_text(x, text_of) for x in v[2])})"
    if kind == "rzero":
        return f"zero({v[1].name})"
    if kind in ("rcast", "rsame"):
        return f"bitcast({v[1].name}, {text_of(v[2]) if kind == 'rcast' else record_text(v[2], text_of)})"
    if kind == "rload":
        return f"atomic_load({place_text(v[1], [], text_of)})"
    if kind == "rpick":
        c, x, y = text_of(v[1]), record_text(v[2], text_of), record_text(v[3], text_of)
        return f"select({c}, {x}, {y})" if v[4] else f"({text_of(v[1], 1)} ? {x} : {y})"
    return f"{v[1].name}({record_text(v[2], text_of)}, {text_of(v[3])})"


def value_text(v, text_of):
    if isinstance(v, list):
        return f"({', '.join(value_text(x, text_of) for x in v)}{',' if len(v) == 1 else ''})"
    if v[0] == "array":
        return place_text(v[1], v[2], text_of)
    return record_text(v, text_of) if is_record(v) else text_of(v)


def is_record(v): return v[0] in ("rplace", "rmake", "rzero", "rpick", "rcall", "rcast", "rsame", "rload")


def statement_text(s, text_of):
    kind = s[0]
    if kind == "rlet":
        return f"{'var' if s[3] else 'let'} {s[1]} = {record_text(s[2], text_of)}"
    if kind == "rset":
        return f"{place_text(s[1], s[2], text_of)} {s[3]}= {text_of(s[4])}"
    if kind in ("rput", "rarray"):
        return f"{place_text(s[1], s[2], text_of)} = {value_text(s[3], text_of)}"
    if kind == "rfill":
        return f"{s[1]} {s[2]}: {s[3].name}[{s[4]}]"
    if kind == "rtouch":
        return f"let {s[1]} = {s[2].name}({s[3]}, {text_of(s[4])}, {text_of(s[5])})"
    if kind == "rstore":
        return f"atomic_store({place_text(s[1], [], text_of)}, {record_text(s[2], text_of)})"
    if kind in ("rexch", "rcas"):
        operands = ", ".join(record_text(v, text_of) for v in s[3:])
        return f"let {s[1]} = atomic_{kind[1:]}({place_text(s[2], [], text_of)}, {operands})"
    if kind == "ratomic":
        return f"{s[1]}({place_text(s[2], s[3], text_of)}, {text_of(s[4])})"
    return f"let {s[2]} = {s[1]}({text_of(s[3])}, {record_text(s[4], text_of)}, {text_of(s[5])})"


class Change:
    """A func that changes a number in a struct: in its own copy, or in an element of an array."""

    def __init__(self, name, struct, path, read, is_element):
        self.name, self.struct, self.path, self.read, self.is_element = name, struct, path, read, is_element

    def text(self):
        place = lambda base, path: place_text(("rname", base), path, language.text_of)
        if self.is_element:
            return f"func {self.name}(s, i, v) {{\n  {place('s[i]', self.path)} = v\n  return {place('s[i]', self.read)}\n}}"
        return f"func {self.name}(s, v) {{\n  var t = s\n  {place('t', self.path)} = v\n  return t\n}}"


# ---- meaning ----

def zero_code(t, extents=()):
    if extents:
        return f"[{', '.join([zero_code(t, extents[1:])] * extents[0])}]"
    if isinstance(t, Struct):
        return f"[{', '.join(zero_code(u, x) for _, u, x in t.fields)}]"
    return "False" if t == "bool" else "0.0" if t in FLOATS else "0"


class Translation:
    def place(self, base, path):
        """Returns the Python source, type and extents of the value at this place."""
        if base[0] == "rname":
            name = self.env[base[1]]
            if not isinstance(name, Record):
                raise language.TypeMismatch("no struct")
            py, t = name.py, name.ty
        else:
            array = self.env[base[1]]
            py, t = f"{array.py}[{self.offset(array, base[2])}]", array.element
        extents = ()
        for step in path:
            if isinstance(step, str):
                k = t.number[step]
                py += f"[{k}]"
                t, extents = t.fields[k][1:]
                continue
            index = step[1]
            py += f"[{index[1] % extents[0] if index[0] == 'lit' else self.index_code(self.expr(index))}]"
            extents = extents[1:]
        return py, t, extents

    def expr_member(self, base, path):
        py, t, extents = self.place(base, path)
        if extents or isinstance(t, Struct):
            raise language.TypeMismatch("no number")
        is_known = base[0] == "rname" and self.env[base[1]].is_known
        return self.typed(t, py, language.PERHAPS if is_known else language.NOT)

    def record(self, v):
        """Returns the struct and the Python source of a value."""
        kind = v[0]
        if kind == "rplace":
            py, t, extents = self.place(v[1], v[2])
            if extents or not isinstance(t, Struct):
                raise language.TypeMismatch("no struct")
            return t, py
        if kind == "rmake":
            return v[1], f"[{', '.join(self.member_value(x, t, extents) for x, (_, t, extents) in zip(v[2], v[1].fields))}]"
        if kind == "rzero":
            return v[1], zero_code(v[1])
        if kind == "rcast":
            x = self.expr(v[2])
            if language.is_weak(x.ty) or x.ty == "bool" or BYTES[x.ty] != v[1].size or not v[1].is_whole:
                raise language.TypeMismatch("bitcast")
            return v[1], f"record_of_bits(bits_of({x.py}, '{x.ty}'), {shape_code(v[1])})"
        if kind == "rsame":
            t, py = self.record(v[2])
            if t.size != v[1].size or not (t.is_whole and v[1].is_whole):
                raise language.TypeMismatch("bitcast")
            return v[1], f"record_of_bits({self.bits_code(t, py)}, {shape_code(v[1])})"
        if kind == "rload":
            py, t, _ = self.place(v[1], [])
            return t, py
        if kind == "rpick":
            test = self.expr(v[1])
            is_true = None if v[4] else self.decided(test)
            if is_true is not None:
                return self.record(v[2] if is_true else v[3])
            condition = self.tested(test)
            (t, x), (u, y) = self.record(v[2]), self.record(v[3])
            if t is not u:
                raise language.TypeMismatch("two structs")
            return t, f"({x}, {y})[not {condition}]" if v[4] else f"({x} if {condition} else {y})"
        t, py = self.record(v[2])
        _, leaf, _ = self.place(("rname", self.bind(t)), v[1].path)
        return t, f"with_member({py}, {self.keys(v[1])}, {self.stored_code(v[3], leaf)})"

    def bits_code(self, t, py): return f"record_bits({py}, {shape_code(t)})"

    def expr_rbits(self, t, v):
        u, py = self.record(v)
        if t == "bool" or u.size != BYTES[t] or not u.is_whole:
            raise language.TypeMismatch("bitcast")
        return self.typed(t, f"of_bits({self.bits_code(u, py)}, '{t}')")

    def bind(self, t):
        self.env["?"] = Record(t, "?", False)
        return "?"

    def keys(self, change):
        t, extents, keys = change.struct, (), []
        for step in change.path:
            if isinstance(step, str):
                keys.append(t.number[step])
                t, extents = t.fields[keys[-1]][1:]
            else:
                keys.append(step[1][1] % extents[0])
                extents = extents[1:]
        return keys

    def stored_code(self, e, t):
        return self.store(self.expr(e), t)

    def member_value(self, v, t, extents):
        if extents:
            if not isinstance(v, list):
                py, u, own = self.place(v[1], v[2])
                if (u, own) != (t, extents):
                    raise language.TypeMismatch("arrays differ")
                return f"copied({py})"
            return f"[{', '.join(self.member_value(x, t, extents[1:]) for x in v)}]"
        if not isinstance(t, Struct):
            return self.stored_code(v, t)
        u, py = self.record(v)
        if t is not u:
            raise language.TypeMismatch("two structs")
        return f"copied({py})"

    def stmt_rlet(self, s, _):
        name, v, is_var = s[1:]
        t, py = self.record(v)
        self.env[name] = Record(t, "v_" + name, is_var)
        return [f"v_{name} = copied({py})"]

    def stmt_rset(self, s, _):
        base, path, op, e = s[1:]
        place, t, _ = self.place(base, path)
        value = self.stored_code(("bin", op, ("member", base, path), e) if op else e, t)
        return [f"{place} = {value}"]

    def stmt_rput(self, s, _):
        place, t, _ = self.place(s[1], s[2])
        return [f"{place}[:] = {self.member_value(s[3], t, ())}"]

    def stmt_rarray(self, s, _):
        place, t, extents = self.place(s[1], s[2])
        return [f"{place}[:] = {self.member_value(s[3], t, extents)}"]

    def stmt_rfill(self, s, _):
        space, name, t, count = s[1:]
        py = f"{space[0]}_{name}"
        self.env[name] = Records(py, t, (count,))
        elements = f"[{zero_code(t)} for _ in range({count})]"
        return [f"{py} = shared.setdefault('{name}', {elements})" if space == "shared" else f"{py} = {elements}"]

    def stmt_rtouch(self, s, _):
        name, change, array, index, e = s[1:]
        base = ("relem", array, [index], 0)
        place, t, _ = self.place(base, change.path)
        read, u, _ = self.place(base, change.read)
        value = self.stored_code(e, t)
        self.env[name] = self.typed(u, "v_" + name)
        return [f"{place} = {value}", f"v_{name} = {read}"]

    def stmt_ratomic(self, s, _):
        op, base, path, e = s[1:]
        place, t, _ = self.place(base, path)
        value = self.stored_code(e, t)
        new = {"atomic_add": f"{place} + {value}", "atomic_max": f"max({place}, {value})", "atomic_xor": f"{place} ^ {value}"}[op]
        return [f"{place} = {language.wrap_code(new, t)}"]

    def whole_value(self, v, t):
        u, py = self.record(v)
        if u is not t:
            raise language.TypeMismatch("two structs")
        return f"copied({py})"

    def stmt_rstore(self, s, _):
        place, t, _ = self.place(s[1], [])
        return [f"{place}[:] = {self.whole_value(s[2], t)}"]

    def stmt_rexch(self, s, _):
        name, base, v = s[1:]
        place, t, _ = self.place(base, [])
        value = self.whole_value(v, t)
        self.env[name] = Record(t, "v_" + name, False)
        return [f"v_{name}, {place}[:] = copied({place}), {value}"]

    def stmt_rcas(self, s, _):
        name, base, expected, desired = s[1:]
        place, t, _ = self.place(base, [])
        expected, desired = self.whole_value(expected, t), self.whole_value(desired, t)
        self.env[name] = Record(t, "v_" + name, False)
        is_same = f"{self.bits_code(t, place)} == {self.bits_code(t, expected)}"
        return [f"v_{name}, {place}[:] = copied({place}), {desired} if {is_same} else copied({place})"]

    def stmt_rshfl(self, s, _):
        kind, name, mask, v, lane = s[1:]
        self.site += 1
        t, py = self.record(v)
        self.env[name] = Record(t, "v_" + name, False)
        return [f"v_{name} = yield 'warp', ({self.site}, {language.to_type(self.expr(mask), 'u32')}, '{kind}', (copied({py}), {language.to_type(self.expr(lane), 'i32')}, 32))"]


# ---- random ones ----

class Generation:
    def declare_structs(self, prefix):
        r = self.r
        self.structs, self.changes = [], []
        if r.random() < 0.5:
            return
        for n in range(r.choice((1, 1, 2, 3))):
            fields = []
            for k in range(r.randint(1, 4)):
                t = r.choice(self.structs) if self.structs and r.random() < 0.4 else r.choice(SCALARS)
                extents = () if r.random() < 0.7 else (r.randint(1, 4),) if r.random() < 0.8 else (r.randint(1, 3), r.randint(1, 2))
                fields.append((f"f{k}", t, extents))
            self.structs.append(Struct(f"{prefix}_{n}", fields, r.random() < 0.2, r.choice((1, 1, 1, 8, 16))))
        for n in range(r.choice((0, 1, 1, 2))):
            self.structs.append(self.word_struct(f"{prefix}_w{n}", r.choice((4, 8, 8, 16, 16))))
        for t in self.structs:
            if r.random() < 0.5:
                self.changes.append(Change(self.name("change"), t, self.fixed_path(t), self.fixed_path(t), r.random() < 0.5))
        self.kernel.declarations = [t.text() for t in self.structs] + [c.text() for c in self.changes]

    def word_struct(self, name, size):
        """A struct with a size that atomics support, without gaps. Its alignment is usually its size."""
        r, fields, at = self.r, [], 0
        while at < size:
            t = r.choice([t for t in SCALARS[1:] if at % BYTES[t] == 0 and at + BYTES[t] <= size])
            count = r.choice((1, 1, 1, 2, 3))
            count = min(count, (size - at) // BYTES[t])
            fields.append((f"f{len(fields)}", t, (count,) if count > 1 else ()))
            at += BYTES[t] * count
        return Struct(name, fields, False, size if r.random() < 0.9 else 1)

    def path(self, t, is_leaf, index):
        """Steps to a number, or to the point at which they stop."""
        r, path, extents = self.r, [], ()
        while True:
            if extents:
                path += [("at", index(extent)) for extent in extents]
                extents = ()
            if not isinstance(t, Struct) or not is_leaf and r.random() < 0.4:
                return path
            name, t, extents = r.choice(t.fields)
            path.append(name)

    def fixed_path(self, t):
        return self.path(t, True, lambda extent: language_lit(self.r.randrange(extent)))

    def record_path(self, t, is_leaf=True):
        return self.path(t, is_leaf, lambda extent: self.index(extent, None, 0))

    def bases(self, is_place=False):
        """Returns the expressions through which structs can be accessed."""
        found = []
        for name, v in self.tr.env.items():
            if isinstance(v, Record) and name != "?" and (v.is_var or not is_place):
                found.append((("rname", name), v.ty))
            elif isinstance(v, Records) and name not in self.unreadable | self.hidden:
                if v.is_own:
                    indices = [("var", i) for i in self.places]
                elif is_place and name not in self.changeable:
                    continue
                else:
                    indices = [self.index(extent, k, len(v.shape)) for k, extent in enumerate(v.shape)]
                found.append((("relem", name, indices, self.r.choice((0, 0, 0, 0, 1, 2))), v.element))
        return found

    def member(self):
        """A number in a struct, or None."""
        found = self.bases()
        if not found:
            return None
        base, t = self.r.choice(found)
        if t.is_whole and t.size in (1, 2, 4, 8) and self.r.random() < 0.3:
            return ("rbits", self.r.choice([u for u in SCALARS[1:] if BYTES[u] == t.size]), ("rplace", base, []))
        return ("member", base, self.record_path(t))

    def record_of(self, t, depth):
        r = self.r
        found = []
        for base, u in self.bases():
            path = [] if u is t else self.record_path(u, False)
            if self.type_at(base, path) is t:
                found.append(("rplace", base, path))
        if found and r.random() < 0.5:
            return r.choice(found)
        k = r.random()
        if depth > 0 and k < 0.2:
            return ("rpick", self.test(1), self.record_of(t, depth - 1), self.record_of(t, depth - 1), r.random() < 0.5)
        changes = [c for c in self.changes if c.struct is t and not c.is_element]
        if depth > 0 and k < 0.4 and changes:
            change = r.choice(changes)
            leaf = self.leaf_at(t, change.path)
            return ("rcall", change, self.record_of(t, depth - 1), self.stored(leaf, 1))
        if k < 0.45:
            return ("rzero", t)
        if k < 0.6 and t.is_whole:
            others = [u for u in self.structs if u.is_whole and u.size == t.size and u is not t]
            if depth > 0 and others and r.random() < 0.7:
                return ("rsame", t, self.record_of(r.choice(others), depth - 1))
            if t.size in (1, 2, 4, 8):
                number = "u" + str(8 * t.size)
                return ("rcast", t, ("cast", number, self.stored(number, max(depth, 0))))
        return ("rmake", t, [self.member_of(u, x, depth - 1) for _, u, x in t.fields])

    def member_of(self, t, extents, depth):
        if extents:
            return [self.member_of(t, extents[1:], depth) for _ in range(extents[0])]
        return self.record_of(t, depth) if isinstance(t, Struct) else self.stored(t, max(depth, 0))

    def type_at(self, base, path):
        try:
            _, t, extents = self.tr.place(base, path)
        except language.TypeMismatch:
            return None
        return None if extents else t

    def leaf_at(self, t, path):
        for step in path:
            if isinstance(step, str):
                t = t.fields[t.number[step]][1]
        return t

    def record_statement(self, out, depth):
        r = self.r
        if not self.structs:
            return self.assign(out, depth)
        places = self.bases(True)
        k = r.random()
        touches = [c for c in self.changes if c.is_element]
        if k < 0.15 and touches:
            change = r.choice(touches)
            arrays = [n for n, v in self.tr.env.items() if isinstance(v, Records) and v.element is change.struct and len(v.shape) == 1 and (v.is_own or n in self.changeable) and n not in self.unreadable]
            if arrays:
                name = r.choice(arrays)
                v = self.tr.env[name]
                index = ("var", self.places[0]) if v.is_own else self.index(v.shape[0], 0, 1)
                if index[0] == "lit":
                    index = language_lit(index[1] % v.shape[0])
                self.emit(out, ("rtouch", self.name("t"), change, name, index, self.stored(self.leaf_at(change.struct, change.path), 1)))
                return
        if not places or k < 0.35:
            self.emit(out, ("rlet", self.name("r"), self.record_of(r.choice(self.structs), 2), r.random() < 0.7))
            return
        base, t = r.choice(places)
        if base[0] == "relem" and t.is_atomic and self.tr.env[base[1]].is_own and r.random() < 0.7:
            return self.change_whole(out, base, t)
        if k < 0.75:
            path = self.record_path(t)
            op = r.choice(("", "", "+", "-", "*", "^", "|"))
            self.emit(out, ("rset", base, path, op, self.stored(self.type_at(base, path), depth)))
            return
        path = self.record_path(t, False)
        here = self.type_at(base, path)
        if not isinstance(here, Struct):
            return self.emit(out, ("rset", base, path, "", self.stored(here, depth)))
        arrays = [f for f in here.fields if f[2]]
        if arrays and r.random() < 0.5:
            name, u, extents = r.choice(arrays)
            value = self.member_of(u, extents, 1)
            others = [b for b, v in self.bases() if v is t]
            if others and r.random() < 0.5:
                value = ("array", r.choice(others), [*path, name])
            return self.emit(out, ("rarray", base, [*path, name], value))
        self.emit(out, ("rput", base, path, self.record_of(here, 2)))

    def change_whole(self, out, base, t):
        """An element that no other thread changes meanwhile. Not every GPU supports exchanges of 16 bytes."""
        r = self.r
        kind = r.choice(("rstore", "rexch", "rexch", "rcas") if t.size < 16 else ("rstore",))
        if kind == "rstore":
            self.emit(out, ("rstore", base, self.record_of(t, 2)))
        elif kind == "rexch":
            self.emit(out, ("rexch", self.name("r"), base, self.record_of(t, 2)))
        else:
            expected = ("rplace", base, []) if r.random() < 0.5 else self.record_of(t, 1)
            self.emit(out, ("rcas", self.name("r"), base, expected, self.record_of(t, 1)))

    def local_records(self, out, depth):
        """A local array of structs that a loop fills."""
        if not self.structs:
            return
        r, name, k = self.r, self.name("a"), self.name("k")
        t, count = r.choice(self.structs), r.randint(1, 4)
        self.emit(out, ("rfill", "local", name, t, count))
        self.unreadable.add(name)

        def body(b):
            self.tr.env[k] = self.tr.typed("i32", "v_" + k)
            self.emit(b, ("rput", ("relem", name, [("var", k)], 0), [], self.record_of(t, 1)))
        out.append(("for", "range", [k], [language_lit(count)], self.in_block(body), ""))
        self.unreadable.discard(name)
        self.changeable.add(name)

    def exchange_records(self, out, depth):
        """Each thread writes its element; a barrier; then each thread reads another element, or all change a number in
        a few elements with atomics."""
        if not self.structs:
            return self.exchange(out, depth)
        r, name, t = self.r, self.name("h"), self.r.choice(self.structs)
        if t.size * self.block_size > 16384:
            return self.exchange(out, depth)
        self.kernel.shares_records = True
        self.emit(out, ("rfill", "shared", name, t, self.block_size))
        self.unreadable.add(name)
        self.emit(out, ("rput", ("relem", name, [("var", "t")], 0), [], self.record_of(t, 2)))
        self.emit(out, ("sync", "syncthreads", None, []))
        if t.is_atomic and r.random() < 0.8:
            self.change_whole(out, ("relem", name, [("var", "t")], 0), t)
            self.emit(out, ("sync", "syncthreads", None, []))
        path = self.record_path(t)
        if self.leaf_at(t, path) in ("i32", "u32", "i64", "u64") and not t.is_packed and not self.has_packed(t):
            index = ("bin", "%", ("var", "t"), language_lit(r.randint(1, 5)))
            path = [step if isinstance(step, str) else ("at", language_lit(0)) for step in path]
            self.emit(out, ("ratomic", r.choice(("atomic_add", "atomic_max", "atomic_xor")), ("relem", name, [index], 0), path, self.stored(self.leaf_at(t, path), 2)))
            self.emit(out, ("sync", "syncthreads", None, []))
        shift = ("bin", "%", ("bin", "+", ("var", "t"), language_lit(r.randint(0, 40))), language_lit(self.block_size))
        base = ("relem", name, [r.choice((shift, language_lit(0)))], 0)
        self.emit(out, ("rlet", self.name("r"), ("rload", base) if t.is_atomic and r.random() < 0.5 else ("rplace", base, []), True))
        self.emit(out, ("sync", "syncthreads", None, []))

    def has_packed(self, t):
        return t.is_packed or any(isinstance(u, Struct) and self.has_packed(u) for _, u, _ in t.fields)

    def shuffle_records(self, out, depth):
        found = [t for t in self.structs if t.size <= 16]
        if not found:
            return self.exchange_records(out, depth)
        r = self.r
        kind = r.choice(("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"))
        self.emit(out, ("rshfl", kind, self.name("r"), ("lit", 0xFFFFFFFF, "0xffffffff", "wi"), self.record_of(r.choice(found), 1), language_lit(r.choice((0, 1, 2, 4, 8, 16, 3, 31)))))


def language_lit(value): return ("lit", value, repr(value), "wi")

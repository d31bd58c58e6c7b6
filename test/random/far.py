"""Views through pointers to memory with more than 2^31 elements, of which a kernel accesses only a few. Only the memory
of these elements exists."""
import mmap

import numpy as np

TYPES = {"i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "f32": np.float32}
WINDOW = 64  # number of elements that are read from each base on; the same number after them is written
NO_RESERVE = 0x4000  # Linux's MAP_NORESERVE


class Pointer:
    """The type of a parameter."""

    def __init__(self, element):
        self.element, self.name = element, element + "*"

    def __str__(self):
        return self.name


class Memory:
    """Creates count elements: random numbers in the windows, and 0 elsewhere."""

    def __init__(self, element, count, bases, numbers):
        self.element, self.count = element, count
        size = count * np.dtype(TYPES[element]).itemsize
        self.map = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
        self.array = np.frombuffer(self.map, TYPES[element])
        for base in bases:
            self.array[base : base + WINDOW] = numbers(element, WINDOW)

    def address(self):
        return self.array.ctypes.data

    def differences(self, wanted, same, may_lack):
        """Returns the differences from the values that the evaluation has written. may_lack: elements may be
        unwritten."""
        got = ((i, self.array[i].item(), value) for i, value in sorted(wanted.written.items()))
        return [f"behind the pointer, element {i}: got {g}, expected {w}" for i, g, w in got if not same(g, w) and not (may_lack and g == 0)]


class Cells:
    """The memory as the evaluation accesses it."""

    def __init__(self, memory):
        self.memory, self.written = memory, {}

    def __getitem__(self, i):
        return self.written[i] if i in self.written else self.memory.array[i].item()

    def __setitem__(self, i, value):
        if not 0 <= i < self.memory.count:
            raise IndexError(i)
        self.written[i] = value


class Generation:
    """A part of the generator."""

    far = None  # the view's name

    def add_far(self):
        """Adds a pointer, an extent, and a view with one or two dimensions, before all other statements of the
        kernel."""
        k, r = self.kernel, self.r
        t, rows = r.choice(list(TYPES)), r.choice((None, None, 1, 3))
        n = r.choice((2**31, 2**31 + 5, 2**32 - 1, 2**32, 2**32 + 77, 5000000000)) + r.randint(0, 999)
        if np.dtype(TYPES[t]).itemsize > 1:
            n, rows = min(n, 2**32 + 77), None
        self.far, self.far_count = "far", n * (rows or 1)
        self.far_bases = [b for b in (0, 2**31 - 32, 2**31 + 1000, 2**32 - 40, n - 2 * WINDOW, self.far_count - 2 * WINDOW) if b + 2 * WINDOW <= self.far_count]
        self.far_bases = [b for i, b in enumerate(self.far_bases) if all(abs(b - c) >= 2 * WINDOW for c in self.far_bases[:i])]
        k.parameters += [("fp", Pointer(t), None), ("fn", "i64", None)]
        k.annotations["fp"] = f": {t}*"
        k.annotations["fn"] = ": i64"
        k.arrays["fp"], k.arrays["fn"] = Memory(t, self.far_count, self.far_bases, self.numbers), np.array([n], np.int64)
        k.far = ("far", t, (n,) if rows is None else (rows, n))
        k.before = [f"let far = view({t}[{'fn' if rows is None else f'{rows}, fn'}], fp)"]

    def far_index(self, base, offset):
        """Returns the index of the element with this number: an expression, or one for each dimension."""
        n = self.kernel.far[2][-1]
        row, column = divmod(base, n)
        first, offset = self.position(column, n), ("cast", "i64", offset)
        indices = [("bin", "+", first, offset)] if self.r.random() < 0.5 else [("bin", "+", offset, first)]
        return indices if len(self.kernel.far[2]) == 1 else [("lit", row, str(row), "wi"), *indices]

    def position(self, column, n):
        """Returns the same number in one of several forms."""
        def number(value):
            return ("lit", value, str(value), "wi")
        length = ("shape", "far", len(self.kernel.far[2]) - 1)
        return self.r.choice((number(column), ("bin", "-", length, number(n - column)), ("bin", "+", ("bin", "//", length, number(2)), number(column - n // 2)),
                              ("bin", "-", ("bin", "*", length, number(2)), number(2 * n - column))))

    def far_element(self):
        names = [n for n in self.scalars(lambda t: t[0] in "iu" and t != "u64") if n not in self.hidden]
        number = self.r.randint(0, WINDOW - 1)
        offset = ("lit", number, str(number), "wi")
        if names and self.r.random() < 0.8:
            offset = ("bin", "%", ("var", self.r.choice(names)), ("lit", WINDOW, str(WINDOW), "wi"))
        fits = [b for b in self.far_bases if b % self.kernel.far[2][-1] + 2 * WINDOW <= self.kernel.far[2][-1]]
        return ("idx", "far", self.far_index(self.r.choice(fits), offset))

    def far_leaf(self):
        shape = self.kernel.far[2]
        return self.far_element() if self.r.random() < 0.6 else ("shape", "far", self.r.randrange(len(shape)))

    def far_store(self, number):
        """number: the thread's number, which is below WINDOW."""
        fits = [b for b in self.far_bases if b % self.kernel.far[2][-1] + 2 * WINDOW <= self.kernel.far[2][-1]]
        return ("idx", "far", self.far_index(self.r.choice(fits) + WINDOW, number))

    def far_extent(self, wanted):
        """An extent of the view that equals the extent of the range."""
        n, axis = self.kernel.far[2][-1], len(self.kernel.far[2]) - 1
        step = self.r.choice([s for s in (n // wanted, n // wanted - 1) if s > 0 and n // s == wanted] or [None])
        return f"far.shape[{axis}] // {step}" if step and self.r.random() < 0.6 else f"far.shape[{axis}] - {n - wanted}"

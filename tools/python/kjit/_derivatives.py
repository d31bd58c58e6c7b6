"""Derivatives of funcs on the host: kjit.jvp, vjp, grad, value_and_grad, hvp, jacobian and hessian."""

import inspect
from typing import NamedTuple

from . import _kjit
from ._functions import Function
from ._traced import raw

# Words of the kernel language that take a func and return its derivative.
_PRIMITIVES = ("grad", "jvp", "vjp")


def make(word, function, numbers):
    """Returns the Derivative of a function; equal choices return the same object.

    numbers: the positions of the chosen parameters. Without numbers all parameters that hold floats
    are chosen. Raises TypeError if function is not a function.
    """
    from ._algorithms import function_of

    if function is None:
        raise TypeError(f"kjit.{word} takes a Python function or a kjit.func, not None")
    of = function if isinstance(function, Derivative) else function_of(function, f"what kjit.{word} derives")
    names = of._parameters()
    for number in numbers:
        if isinstance(number, (tuple, list)):
            raise TypeError(f"kjit.{word} takes each number as a separate argument, kjit.{word}(f, 0, 1), not {number!r}")
        if type(number) is not int or number < 0 or number >= len(names) and not _takes_more(of):
            raise TypeError(f"kjit.{word}: {_name(of)}() has no parameter {number!r}; its parameters are 0 to {len(names) - 1}")
    if len(set(numbers)) < len(numbers):
        raise TypeError(f"kjit.{word}: a parameter is chosen twice in {tuple(numbers)}")
    made, key = of.__dict__.setdefault("_derivatives", {}), (word, tuple(sorted(numbers)))
    if key not in made:
        made[key] = Derivative(word, of, key[1])
    return made[key]  # the object keeps its compiled code


def _takes_more(of):
    """Returns whether a function is a program (see _programs) with *args, which is one parameter
    for any number of arguments."""
    innermost = of.innermost() if isinstance(of, Derivative) else of
    takes_any = getattr(getattr(innermost.py_func, "__code__", None), "co_flags", 0) & inspect.CO_VARARGS
    return bool(takes_any) and programs().is_program(innermost)


def _name(function):
    return function.__name__


# ---- arguments ----


def is_array(x):
    """Returns whether an argument is passed as an array."""
    if not hasattr(x, "shape") or not hasattr(x, "dtype"):
        return False
    import numpy

    return not isinstance(x, numpy.generic)


def _is_ndarray(x):
    import numpy

    return isinstance(x, numpy.ndarray)


def holds_float(x):
    """Returns whether an argument has a derivative: a float, an array of floats, or a record with a
    float field."""
    x = raw(x)
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, (float, complex))
    import numpy

    if isinstance(x, _kjit.Array):
        return dtype.text[:1] in "fc" or dtype.text.startswith("bf")
    return _dtype_holds_float(numpy.dtype(dtype))


def _dtype_holds_float(dtype):
    if dtype.names is not None:
        return any(_dtype_holds_float(dtype.fields[name][0].base) for name in dtype.names)
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def zeros_like(x):
    """Returns an array of zeros for the derivatives with respect to an array, with its shape, type and device."""
    if isinstance(x, _kjit.Array):
        from ._arrays import zeros

        return zeros(x.shape, x.dtype, device=x.device)
    import numpy

    return numpy.zeros(x.shape, x.dtype)


def _as_derivative(x):
    """Returns a derivative that the caller passes, with Python ints converted to floats."""
    if isinstance(x, tuple):
        return tuple(_as_derivative(item) for item in x)
    return float(x) if type(x) in (int, bool) else x


def _items(result, count):
    """Returns the result of a func that returns `count` values as a tuple."""
    return () if count == 0 else (result,) if count == 1 else tuple(result)


def _tuple_text(texts):
    """Returns kernel IR text for a result with these values: a tuple, or the value itself if there
    is only one."""
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _joined(values):
    return values[0] if len(values) == 1 else tuple(values)


def programs():
    """Returns the module with the derivatives of programs. It is imported here because it imports
    this module."""
    from . import _programs

    return _programs


# ---- code generation ----


class _Form(NamedTuple):
    """The form of a call, which decides the code of a derivative. `arguments` is the number of arguments. `items` is the number
    of items of the derivative with respect to the result, 0 for a single value. `arrays` is the number of arguments that are
    arrays of derivatives. `is_void` is true if the code returns nothing."""

    arguments: int
    items: int = 0
    arrays: int = 0
    is_void: bool = False


class _Entry(Function):
    """The func of a derivative for one form."""

    def __init__(self, derivative, form):
        _take_options(self, derivative)
        self._derivative, self._form = derivative, form

    def _write(self):
        from .frontend import module as modules

        builder = modules.Builder(self._rules, self.is_typed)
        builder.arrays_by = self._arrays_by
        name = self._derivative.write_entry(builder, self._form)
        builder.write_all()
        innermost = self._derivative.innermost()
        if builder.returns_optional(innermost):
            raise TypeError(f"{_name(innermost)}() returns None on some paths, and None has no derivative")
        return builder.finish(name)

    def innermost(self):
        return self._derivative.innermost()

    def _returns_value(self):
        return not self._form.is_void

    def write_callee(self, builder):
        """Writes the func into a module, and returns its name there."""
        return self._derivative.write_entry(builder, self._form)

    def _parameters(self):
        own = self._derivative.innermost()._parameters()[: self._form.arguments]
        return (*own, *(f"derivative {i}" for i in range(self._form.arguments - len(own))))

    def __reduce__(self):
        return _Entry, (self._derivative, self._form)


def _take_options(made, of):
    for name in ("py_func", "_options", "_bits", "_device", "_rules", "is_typed", "__name__", "__qualname__", "__module__"):
        setattr(made, name, getattr(of, name))
    made.attributes, made._made, made._loaded = "", None, None


class Derivative(Function):
    """A derivative of a func. Python and kernels can call it, and algorithms accept it as a
    function. See kjit.grad."""

    def __init__(self, word, of, numbers):
        _take_options(self, of)
        self._word, self._of, self._numbers = word, of, numbers
        self.__name__, self.__qualname__ = f"{word}_{of.__name__}", f"{word}_{of.__qualname__}"
        self.__doc__ = f"kjit.{word} of {of.__qualname__}."
        self._entries = {}

    def __repr__(self):
        numbers = "".join(f", {number}" for number in self._numbers)
        return f"<kjit.{self._word}({self._of!r}{numbers})>"

    def __reduce__(self):
        return Derivative, (self._word, self._of, self._numbers)

    def innermost(self):
        """Returns the Python func that is differentiated, also for a derivative of a derivative."""
        return self._of.innermost() if isinstance(self._of, (Derivative, _Entry)) else self._of

    def _parameters(self):
        return self.of_count(None)._parameters()

    def _usual_count(self):
        """Returns the number of arguments if all parameters hold floats."""
        own = len(self._of._parameters())
        chosen = len(self._numbers) or own
        return own + {"jvp": chosen, "hvp": chosen, "vjp": 1}.get(self._word, 0)

    def of_count(self, count):
        """Returns the func for calls with this number of arguments."""
        return self._entry(_Form(self._usual_count() if count is None else count))

    def of_items(self, count, items):
        """Returns the func for a result with this number of items, 0 for a single value."""
        return self._entry(_Form(count, items))

    def _entry(self, form):
        if form not in self._entries:
            self._entries[form] = _Entry(self, form)
        return self._entries[form]

    def _module(self):
        return self.of_count(None)._module()

    def _made_module(self):
        return self.of_count(None)._made_module()

    # ---- kernel IR ----

    def write_callee(self, builder, count=None):
        """Returns the kernel IR text that names the func in a call. count: the number of arguments,
        or None if it is unknown."""
        if self._word in _PRIMITIVES:
            return self._call_of(self._word, self._derived(builder), self._numbers)
        return self.write_entry(builder, _Form(self._usual_count() if count is None else count))

    def _derived(self, builder):
        return self._of.write_callee(builder) if isinstance(self._of, (Derivative, _Entry)) else builder.function(self._of)

    @staticmethod
    def _call_of(word, func, numbers):
        return f"{word}({', '.join([func, *map(str, numbers)])})"

    def write_entry(self, builder, form):
        """Writes a func for a form, and returns its name in the module."""
        names = [f"a{i}" for i in range(form.arguments)]
        lines = getattr(self, f"_write_{self._word}")(self._derived(builder), names, form)
        if form.is_void:
            lines[-1] = lines[-1].removeprefix("return ")
        body = [["  ", line] for line in lines]
        return builder.generated(self.__name__, [[f"func NAME({', '.join(names)}) {{"], *body, ["}"]])

    def _write_grad(self, func, names, _):
        return [f"return {self._call_of('grad', func, self._numbers)}({', '.join(names)})"]

    def _write_jvp(self, func, names, _):
        return [f"return {self._call_of('jvp', func, self._numbers)}({', '.join(names)})"]

    def _write_vjp(self, func, names, form):
        if form.items:
            own = form.arguments - form.items - form.arrays
            result = f"({', '.join(names[own : own + form.items])}{',' if form.items == 1 else ''})"
            names = [*names[:own], result, *names[own + form.items :]]
        return [f"return {self._call_of('vjp', func, self._numbers)}({', '.join(names)})"]

    def _write_value_and_grad(self, func, names, form):
        own = form.arguments - form.arrays
        names = [*names[:own], "1.0", *names[own:]]
        return [f"return {self._call_of('vjp', func, self._numbers)}({', '.join(names)})"]

    def _write_pullback(self, func, names, form):
        """Writes the derivatives of vjp without the value, because maps need flat results and the
        value may be a tuple."""
        lines = self._write_vjp(func, names, form)
        derivatives = [f"all[{i + 1}]" for i in range(len(self._numbers))]
        return [lines[0].replace("return", "let all =", 1), f"return {_tuple_text(derivatives)}"]

    def _write_pullback_jvp(self, func, names, form):
        """Writes the code that differentiates vjp along directions of the chosen parameters: first the derivative of the value,
        then the derivatives of the derivatives."""
        own = len(self._of._parameters())
        result = names[own : own + max(form.items, 1)]
        text = f"({', '.join(result)}{',' if form.items == 1 else ''})" if form.items else result[0]
        call = self._call_of("jvp", self._call_of("vjp", func, self._numbers), self._numbers)
        by_result = [f"all[1][0][{i}]" for i in range(form.items)] or ["all[1][0]"]
        others = [f"all[1][{i + 1}]" for i in range(len(self._numbers))]
        arguments = [*names[:own], text, *names[own + len(result) :]]
        return [f"let all = {call}({', '.join(arguments)})", f"return {_tuple_text([*by_result, *others])}"]

    def _write_hvp(self, func, names, form):
        # The gradient takes the func's parameters, followed by an array for the derivative with
        # respect to each chosen array.
        own = len(self._of._parameters())
        by_arrays = range(own, own + form.arrays) if self._numbers else ()
        call = self._call_of("jvp", self._call_of("grad", func, self._numbers), (*self._numbers, *by_arrays))
        if form.is_void:
            return [f"{call}({', '.join(names)})"]
        return [f"let both = {call}({', '.join(names)})", "return both[1]"]

    def _chosen(self, count):
        return self._numbers or tuple(range(count))

    def _write_columns(self, func, names, items):
        """Returns the lines that compute the derivative along each chosen parameter. items: the
        number of items of each derivative, 0 for a single value."""
        chosen, lines = self._chosen(len(names)), []
        for number in chosen:
            call = self._call_of("jvp", func, (number,))
            lines.append(f"let by_{number} = {call}({', '.join([*names, '1.0'])})")
        rows = [[f"by_{n}[1][{i}]" if items else f"by_{n}[1]" for n in chosen] for i in range(items or 1)]
        texts = [_tuple_text(row) for row in rows]
        text = texts[0] if not items else f"({', '.join(texts)}{',' if items == 1 else ''})"
        return [*lines, f"return {text}"]

    def _write_jacobian(self, func, names, form):
        return self._write_columns(func, names, form.items)

    def _write_hessian(self, func, names, _):
        chosen = self._chosen(len(names))
        return self._write_columns(self._call_of("grad", func, chosen), names, len(chosen) if len(chosen) > 1 else 0)

    # ---- calls from Python ----

    def __call__(self, *args, **keywords):
        if keywords:
            raise TypeError(f"{self.__name__}() takes no keyword arguments; pass arguments and derivatives by position")
        if programs().is_program(self.innermost()):
            return self._call_program(args)
        if isinstance(self._of, Derivative):
            return self._call_nested(args)
        own = len(self._of._parameters())
        if self._word not in ("jvp", "vjp", "hvp") and len(args) < own:
            args = (*args, *self._defaults(own - len(args)))
        if len(args) < own:
            raise TypeError(f"{self.__name__}() first takes the arguments of {_name(self._of)}(), {own}, but {len(args)} were given")
        given = args[:own]
        floats = self._floats(given)
        arrays = [i for i in floats if is_array(given[i])]
        return getattr(self, f"_call_{self._word}")(given, tuple(map(_as_derivative, args[own:])), floats, arrays)

    def _call_program(self, args):
        """Computes the derivative of a program over whole arrays."""
        function = self._of if isinstance(self._of, Derivative) else self._of.py_func
        compute = programs().DERIVATIVES.get(self._word)
        if compute is None:
            raise TypeError(f"{self.__name__}(): {_name(self._of)}() works on whole arrays, and algorithms do not take its derivative")
        return compute(function, self._numbers, args, f"kjit.{self._word}")

    def _defaults(self, missing):
        defaults = self._of.py_func.__defaults__ or ()
        if missing > len(defaults):
            names = self._of._parameters()
            raise TypeError(f"{self.__name__}() lacks an argument for `{names[len(names) - missing]}`")
        return defaults[len(defaults) - missing :]

    def _floats(self, given):
        """Returns the positions of the arguments to differentiate with respect to. Raises TypeError
        if one of them holds no float."""
        names = self._of._parameters()
        for number in self._numbers:
            if not holds_float(given[number]):
                raise TypeError(
                    f"{self.__name__}() differentiates with respect to `{names[number]}`, but {given[number]!r} is not a float; an int is a constant, so write 2.0"
                )
        floats = self._numbers or tuple(i for i, x in enumerate(given) if holds_float(x))
        if not floats and any(isinstance(x, (tuple, list)) for x in given):
            raise TypeError(f"{self.__name__}() differentiates with respect to numbers and arrays, not to tuples; pass each number as a separate argument")
        if not floats:
            raise TypeError(f"{self.__name__}() has no argument that is a float; an int is a constant, so write 2.0")
        return floats

    def _call_nested(self, args):
        """Calls a derivative of a derivative, with the same arguments as in kernels. Raises
        TypeError for arrays."""
        if any(map(is_array, args)):
            raise TypeError(f"{self.__name__}() takes only numbers; kjit.hvp and kjit.hessian compute second derivatives with respect to arrays")
        args = tuple(map(_as_derivative, args))
        items = len(args[-1]) if self._word == "vjp" and args and isinstance(args[-1], tuple) else 0
        flat = (*args[:-1], *args[-1]) if items else args
        return self._entry(_Form(len(flat), items))(*flat)

    def _check_count(self, rest, expected, what):
        if len(rest) != expected:
            own = len(self._of._parameters())
            takes = f"{self.__name__}() takes {own + expected} arguments, {own + len(rest)} were given"
            raise TypeError(f"{takes}: it takes the arguments of {_name(self._of)}(), and {what}")

    def _reverse(self, given, between, floats, arrays, items=0, leading=0):
        """Runs a reverse derivative. Returns a tuple: the first `leading` results of the function,
        followed by the derivatives. The derivatives with respect to arrays are new arrays."""
        shadows = {i: zeros_like(given[i]) for i in arrays}
        raw = (*given, *between, *shadows.values())
        count = leading + len(floats) - len(arrays)
        values = _items(self._entry(_Form(len(raw), items, len(arrays), count == 0))(*raw), count)
        rest = iter(values[leading:])
        return (*values[:leading], *(shadows[i] if i in shadows else next(rest) for i in floats))

    def _call_grad(self, given, rest, floats, arrays):
        self._check_count(rest, 0, "nothing else")
        return _joined(self._reverse(given, (), floats, arrays))

    def _call_value_and_grad(self, given, rest, floats, arrays):
        self._check_count(rest, 0, "nothing else")
        return self._reverse(given, (), floats, arrays, leading=1)

    def returns_value(self):
        """Returns whether the differentiated function returns a value."""
        return bool(self._of._made_module().returned)

    def _call_vjp(self, given, rest, floats, arrays):
        if not self.returns_value():
            self._check_count(rest, len(arrays), "an array of derivatives for each array of floats")
            raw = (*given, *rest)
            return self._entry(_Form(len(raw), 0, len(arrays), len(floats) == len(arrays)))(*raw)
        self._check_count(rest, 1, "the derivative with respect to its result")
        items = len(rest[0]) if isinstance(rest[0], tuple) else 0
        return self._reverse(given, rest[0] if items else rest, floats, arrays, items, leading=1)

    def _call_jvp(self, given, rest, floats, arrays):
        self._check_count(rest, len(floats), "a direction for each chosen argument")
        raw = (*given, *rest)
        return self._entry(_Form(len(raw), 0, 0, not self.returns_value()))(*raw)

    def _call_hvp(self, given, rest, floats, arrays):
        self._check_count(rest, len(floats), "a direction for each chosen argument")
        shadows = [zeros_like(given[i]) for i in arrays]
        results = {i: zeros_like(given[i]) for i in arrays}
        raw = (*given, *shadows, *rest, *results.values())
        count = len(floats) - len(arrays)
        values = iter(_items(self._entry(_Form(len(raw), 0, len(arrays), count == 0))(*raw), count))
        return _joined([results[i] if i in results else next(values) for i in floats])

    def _call_jacobian(self, given, rest, floats, arrays):
        self._check_count(rest, 0, "nothing else")
        if arrays:
            return self._columns_by_array(given, floats, make("jvp", self._of, floats), lambda found: found[1])
        value = self._of(*given)
        entry = make(self._word, self._of, floats)._entry(_Form(len(given), len(value) if isinstance(value, tuple) else 0))
        return entry(*given)

    def _call_hessian(self, given, rest, floats, arrays):
        self._check_count(rest, 0, "nothing else")
        if arrays:
            return self._columns_by_array(given, floats, make("hvp", self._of, floats), lambda found: found)
        return make(self._word, self._of, floats)._entry(_Form(len(given)))(*given)

    def _columns_by_array(self, given, floats, along, take):
        """Returns the derivatives with respect to each element in one array; the axes of the array
        come last in the result."""
        import numpy

        if len(floats) != 1 or not _is_ndarray(given[floats[0]]):
            raise TypeError(f"{self.__name__}() differentiates with respect to one NumPy array, or to numbers; choose the parameter by its position")
        array = given[floats[0]]
        unit, columns = numpy.zeros_like(array), []
        for place in numpy.ndindex(array.shape):
            unit[place] = 1
            columns.append(numpy.array(take(along(*given, unit))))
            unit[place] = 0
        stacked = numpy.stack(columns, axis=-1) if columns else numpy.zeros((0,), array.dtype)
        return stacked.reshape((*stacked.shape[:-1], *array.shape))


# ---- public functions ----


def value_and_grad(function, *numbers):
    """Returns a func that computes the value of `function` and its derivatives: `(f, df/dx, df/dy)`
    for a function `f(x, y)`.

        kjit.value_and_grad(lambda x, y: x * y)(2.0, 3.0)    # (6.0, 3.0, 2.0)

    function: a Python function or a kjit.func that returns one float. numbers: the positions, from 0, of the
    parameters to differentiate with respect to. Without numbers these are all parameters that hold floats; JAX
    in contrast takes the first parameter. The derivative with respect to an array is a new array of the same
    shape.

    A function that works on whole arrays (`kjit.numpy.sum(x * x)`, `x @ w`) runs once for each call, in Python, and its
    operations are recorded. The arrays can be on any device.

    The returned func raises TypeError for a position without a parameter, or if no argument is a
    float.
    """
    return make("value_and_grad", function, numbers)


def hvp(function, *numbers):
    """Returns a func that multiplies the matrix of second derivatives of `function` by a direction,
    without computing the matrix.

    `hvp(f)(x, y, dx, dy)` returns a number or array for x and one for y. function: a Python
    function or a kjit.func that returns one float. numbers: see `kjit.value_and_grad`. The
    direction has a number or array for each chosen parameter.
    """
    return make("hvp", function, numbers)


def jacobian(function, *numbers):
    """Returns a func that computes the derivatives of each result with respect to each parameter.

    For a function of x and y that returns u, the derivatives are `(du/dx, du/dy)`. If the function
    returns `(u, v)`, the derivatives are `((du/dx, du/dy), (dv/dx, dv/dy))`. function: a Python
    function or a kjit.func. numbers: see `kjit.value_and_grad`. If the chosen parameter is one NumPy
    array, the result is an array whose last axes are the argument's axes. The func then calls
    `function` once for each element.
    """
    return make("jacobian", function, numbers)


def hessian(function, *numbers):
    """Returns a func that computes the matrix of second derivatives, `((xx, xy), (yx, yy))`, or a
    number for one parameter.

    function: a Python function or a kjit.func that returns one float. numbers: see
    `kjit.value_and_grad`. If the chosen parameter is one NumPy array, the result is an array that
    has the axes of the argument twice, and the func makes one call for each element.
    """
    return make("hessian", function, numbers)


for _maker in (value_and_grad, hvp, jacobian, hessian):
    _maker.makes_derivative = True  # type: ignore[attr-defined]

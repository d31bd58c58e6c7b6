"""`kjit.gradcheck`: compares derivatives with differences of values, in float64."""

import math

from ._derivatives import Derivative, holds_float, is_array, make

# Step sizes relative to the element, for central differences (the extrapolation from two steps
# reduces their error) and for the complex step.
_STEP = 1e-4
_COMPLEX_STEP = 1e-30
# The number of halvings of the step in the search for a kink or jump.
_HALVINGS = 12


class GradientError(AssertionError):
    """Raised by `kjit.gradcheck` for a wrong derivative.

    `argument` is the position of the argument and `name` its parameter's name. `element` is the
    element index, `()` for a number. `computed` is the derivative, and `expected` is the result of
    differences. `is_discrete` is true if the function has a jump or a kink at this point.
    """

    def __init__(self, text, argument, name, element, computed, expected, is_discrete):
        super().__init__(text)
        self.argument, self.name, self.element = argument, name, element
        self.computed, self.expected, self.is_discrete = computed, expected, is_discrete


def _in_float64(x):
    """Returns the argument, converted to float64 if it holds floats. Raises TypeError for complex
    arguments."""
    if isinstance(x, complex) or getattr(getattr(x, "dtype", None), "kind", "") == "c":
        raise TypeError("kjit.gradcheck takes real arguments: check the derivatives with respect to real and imaginary parts")
    if not holds_float(x):
        return x
    if is_array(x):
        import numpy

        return numpy.array(x.to_host() if hasattr(x, "to_host") else x, numpy.float64)
    return float(x)


class _Place:
    """One element of one argument, which varies while everything else is constant."""

    def __init__(self, function, given, number, element):
        self.function, self.given, self.number, self.element = function, given, number, element
        self.at = given[number][element] if is_array(given[number]) else given[number]

    def value(self, moved):
        """Returns the function's results as a list of numbers, with the value `moved` for this element."""
        given = list(self.given)
        if is_array(given[self.number]):
            given[self.number] = given[self.number].astype(type(moved))
            given[self.number][self.element] = moved
        else:
            given[self.number] = moved
        return _numbers(self.function(*given))

    def direction(self, number):
        """Returns the derivative of argument `number` with respect to this element: 1 at the element
        and 0 elsewhere."""
        import numpy

        if not is_array(self.given[number]):
            return float(number == self.number)
        along = numpy.zeros_like(self.given[number])
        if number == self.number:
            along[self.element] = 1
        return along


def _numbers(result):
    """Returns the result of a function as a flat list of numbers."""
    if isinstance(result, tuple):
        return [number for item in result for number in _numbers(item)]
    return [result]


class _Differences:
    """Differences of one result along one element. `central` is extrapolated from two steps, and
    `error` bounds its error. `left` and `right` are the one-sided differences for the smallest
    step."""

    def __init__(self, place, result, step):
        self._place, self._result, self._base = place, result, place.value(place.at)[result]
        coarse, fine = self.by(step), self.by(step / 2)
        self.central = (4 * fine - coarse) / 3
        rounding = 4e-16 * max(abs(self._base), abs(self._at(step))) / step
        self.error = 2 * abs(fine - coarse) + 8 * rounding
        self._step = step

    def _at(self, offset):
        return self._place.value(self._place.at + offset)[self._result]

    def by(self, step):
        return (self._at(step) - self._at(-step)) / (2 * step)

    def is_crossed(self):
        """Returns whether a kink or a jump lies within every step. The one-sided differences then
        do not approach each other for smaller steps."""
        gaps = []
        for halving in (0, _HALVINGS):
            step = self._step / 2**halving
            self.left, self.right = (self._base - self._at(-step)) / step, (self._at(step) - self._base) / step
            gaps.append(abs(self.right - self.left))
        rounding = 1e-15 * (1 + abs(self._base)) / step
        return gaps[1] > max(gaps[0] / 8, 16 * rounding)

    def settled(self, tolerance):
        """Returns (difference, error) for smaller steps, which may no longer contain the kink or
        jump. Returns None if the differences do not converge."""
        last = None
        for halving in range(1, _HALVINGS + 1):
            now = self.by(self._step / 2**halving)
            rounding = 1e-15 * (1 + abs(self._base)) * 2**halving / self._step
            if last is not None and abs(now - last) <= tolerance * (1 + abs(now)) + rounding:
                return now, tolerance * (1 + abs(now)) + 4 * rounding
            last = now
        return None


def _complex_step(place):
    """Returns the derivatives of all results by a complex step, or None if the function does not
    accept complex numbers."""
    from ._errors import Error

    step = _COMPLEX_STEP
    try:
        values = place.value(complex(place.at, step))
    except (Error, TypeError, ValueError):
        return None
    if not all(isinstance(value, complex) for value in values):
        return None
    return [value.imag / step for value in values]


def _describe(place, name, result, count):
    where = f"argument {place.number} (`{name}`)"
    if place.element:
        where += f", element {place.element if len(place.element) > 1 else place.element[0]}"
    return where + (f", result {result}" if count > 1 else "")


class _Check:
    """A check of one function for given arguments."""

    def __init__(self, function, given, numbers, rtol, atol):
        self.function, self.given, self.numbers, self.rtol, self.atol = function, given, numbers, rtol, atol
        self.names = function._parameters()
        self.results = _numbers(function(*given))
        for i, value in enumerate(self.results):
            if type(value) is not float or not math.isfinite(value):
                raise TypeError(f"kjit.gradcheck: result {i} of {function.__name__}() is {value!r}, but results must be finite floats")

    def forward(self, place):
        found = make("jvp", self.function, self.numbers)(*self.given, *(place.direction(n) for n in self.numbers))
        return _numbers(found[1])

    def reverse(self):
        """Returns for each result the derivatives with respect to all arguments."""
        rows, is_tuple = [], isinstance(self.function(*self.given), tuple)
        for i in range(len(self.results)):
            by = tuple(float(i == k) for k in range(len(self.results)))
            rows.append(make("vjp", self.function, self.numbers)(*self.given, by if is_tuple else by[0])[-len(self.numbers) :])
        return rows

    def elements(self):
        import numpy

        for number in self.numbers:
            for element in numpy.ndindex(numpy.shape(self.given[number])):
                yield _Place(self.function, self.given, number, element)

    def run(self, modes):
        rows = self.reverse() if "reverse" in modes else None
        for place in self.elements():
            exact, along = self.exact(place), self.forward(place) if "forward" in modes else None
            for i in range(len(self.results)):
                found = {}
                if along:
                    found["forward"] = along[i]
                if rows:
                    by = rows[i][self.numbers.index(place.number)]
                    found["reverse"] = float(by[place.element]) if is_array(by) else by
                self.compare(place, i, found, exact and exact[i])

    def exact(self, place):
        return _complex_step(place)

    def compare(self, place, result, found, exact):
        """Raises GradientError if a derivative differs from the differences of values."""
        differences = _Differences(place, result, _STEP * max(1.0, abs(place.at)))
        expected, error = differences.central, differences.error + self.atol + self.rtol * abs(differences.central)
        # The derivative by a complex step is more exact than differences, but wrong for functions such as abs. It is
        # used only if it agrees with the differences.
        if exact is not None and abs(exact - expected) <= error:
            expected, error = exact, self.atol + self.rtol * abs(exact)
        for mode, computed in found.items():
            if abs(computed - expected) <= error:
                continue
            settled = differences.settled(self.rtol)
            if settled and abs(computed - settled[0]) <= settled[1] + self.atol:
                continue
            self.fail(place, result, mode, computed, expected, differences)

    def fail(self, place, result, mode, computed, expected, differences):
        name = self.names[place.number]
        where = f"{self.function.__name__}(), {_describe(place, name, result, len(self.results))} = {place.at!r}"
        is_discrete = differences.is_crossed()
        if is_discrete:
            text = (
                f"{where}: the function has a kink or a jump there, so that it has no single derivative: differences give "
                f"{differences.left:.9g} from below and {differences.right:.9g} from above, the {mode} derivative is "
                f"{computed:.9g}. Check another place"
            )
        else:
            text = f"{where}: the {mode} derivative is {computed:.17g}, differences of the values give {expected:.17g}"
        raise GradientError(text, place.number, name, place.element, computed, expected, is_discrete)


def _to_host(x):
    return x.to_host() if hasattr(x, "to_host") else x


class _Weighted:
    """A call that returns arrays, as a function that returns one number: the weighted sum of all
    elements."""

    def __init__(self, call, given):
        import numpy

        results = call(*given)
        self.is_tuple = isinstance(results, tuple)
        rng = numpy.random.default_rng(1)
        self.weights = [rng.uniform(0.5, 1.5, numpy.shape(_to_host(r))) for r in (results if self.is_tuple else (results,))]
        self._call, self.__name__ = call, getattr(call, "__name__", "function")
        self._count = len(given)

    def _parameters(self):
        import inspect

        try:
            names = tuple(inspect.signature(self._call).parameters)
        except (TypeError, ValueError):
            names = ()
        return (*names, *(f"argument {i}" for i in range(len(names), self._count)))

    def __call__(self, *given):
        results = self._call(*given)
        return float(sum((_to_host(r) * w).sum() for r, w in zip(results if self.is_tuple else (results,), self.weights)))


class _CheckOfCall(_Check):
    """A check of a derivative that the caller passes."""

    derivative = None

    def reverse(self):
        weights = [w if w.shape else float(w) for w in self.function.weights]
        found = self.derivative(*self.given, tuple(weights) if self.function.is_tuple else weights[0])
        found = tuple(map(_to_host, found)) if isinstance(found, tuple) else (_to_host(found),)
        if len(found) != len(self.numbers):
            raise TypeError(f"kjit.gradcheck: derivative returns {len(found)} derivatives, but {len(self.numbers)} arguments need one")
        return [found]

    def exact(self, place):
        return None


def gradcheck(function, *arguments, parameters=None, derivative=None, modes=("forward", "reverse"), rtol=1e-9, atol=1e-10):
    """Compares the derivatives of a function with differences of its values, in float64, and
    returns True.

    function: a Python function, a kjit.func, or a derivative; `kjit.grad(f)` checks second
    derivatives. arguments: a call's arguments. Floats and arrays of floats are converted to
    float64. parameters: the positions of the parameters to differentiate with respect to; None
    means all parameters that hold floats. modes: "forward" checks kjit.jvp, "reverse" checks
    kjit.vjp.

    derivative: a function that computes the derivatives of `function`. With this argument,
    `function` may be any Python function, for example a function that calls kjit.map. gradcheck
    calls `derivative` with the arguments and the derivative of the result. `derivative` returns the
    derivative with respect to the argument, or a tuple for several arguments. gradcheck then
    ignores `modes`.

    rtol, atol: the allowed error of a derivative. The reference is a complex step if the function
    accepts complex numbers. Otherwise it is central differences with two steps, whose own error is
    allowed in addition.

    Raises GradientError if a derivative is wrong, or if the function has a kink or a jump at this
    point. Raises TypeError if no argument or result is a float, and ValueError for an unknown mode.
    """
    from ._algorithms import function_of

    unknown = set(modes) - {"forward", "reverse"}
    if unknown:
        raise ValueError(f"a mode must be 'forward' or 'reverse', not {min(unknown)!r}")
    given = tuple(map(_in_float64, arguments))
    numbers = tuple(parameters) if parameters is not None else tuple(i for i, x in enumerate(given) if holds_float(x))
    if not numbers or any(type(n) is not int or not 0 <= n < len(given) or not holds_float(given[n]) for n in numbers):
        raise TypeError(f"kjit.gradcheck: no argument is a float, or {numbers} are not positions of float arguments")
    if derivative is not None:
        check = _CheckOfCall(_Weighted(function, given), given, numbers, rtol, atol)
        check.derivative = derivative
        check.run(("reverse",))
        return True
    of = function if isinstance(function, Derivative) else function_of(function, "what kjit.gradcheck checks")
    _Check(of, given, numbers, rtol, atol).run(modes)
    return True

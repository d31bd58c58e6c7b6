"""The compiled code of functions made by kjit.njit, under Numba's names."""

from . import _kjit, _overloading


class Code:
    """The methods of a function that return its code. Each takes the argument types, such as
    `(float64[::1], int64)`; without them the result is a dictionary from each call's types so far
    to its code."""

    def inspect_llvm(self, signature=None):
        """Returns the optimized LLVM IR for the CPU, a string."""
        return self._code("llvm-opt", signature)

    def inspect_asm(self, signature=None):
        """Returns the assembly code for the CPU, a string."""
        return self._code("asm", signature)

    def inspect_types(self, file=None, signature=None, pretty=False):
        """Prints the kernel IR of the function with the types of all variables. pretty has no
        effect."""
        found = self._code("typed", signature)
        listed = found.items() if signature is None else [(signature, found)]
        for types, text in listed:
            print(f"{self.py_func.__name__} {types}\n{text}", file=file)

    def _code(self, stage, signature):
        if signature is None:
            return {types: self._code(stage, types) for types in self.signatures}
        from .cuda import types

        if self.runs_in_python:
            raise NotImplementedError(f"{self.__name__}: Python runs this function; `{self.__name__}.ir` has its compiled loops and expressions")
        kinds = types.parse(signature).args
        texts = [kind.text + (f" {kind.layout}" if getattr(kind, "layout", "A") != "A" else "") for kind in kinds]
        if not all(texts) or any(isinstance(kind, types.BaseTuple) for kind in kinds):
            raise NotImplementedError(f"{self.__name__}: the code for tuples, None, strings and functions as arguments cannot be shown: {kinds}")

        def compiled():
            module, name = self._module()
            return _kjit.compile_function(module, name, ", ".join(texts), None, stage, "cpu", self._bits[1])

        return _overloading.resolving(compiled, lambda: self.__dict__.update(_made=None))

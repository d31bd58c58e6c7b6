"""Stand-ins for Numba's names that kjit does not support. Importing such a name succeeds, because
many programs import more than they use. Using the name raises an error that names it."""

import types


class _Missing(type):
    """The class of stand-ins. Stand-ins are classes, so that isinstance accepts them and classes
    can derive from them."""

    kjit_missing: str

    def __call__(cls, *arguments, **keywords):
        raise NotImplementedError(cls.kjit_missing)

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"{cls.kjit_missing}, so {cls.__name__}.{name} does not exist")

    def __repr__(cls):
        return f"<kjit's stand-in for {cls.__module__}.{cls.__name__}>"


def missing(name, module, text):
    """Returns a stand-in for a name of a module. text: the error's message when the name is used.
    """
    return _Missing(name, (), {"kjit_missing": text, "__module__": module})


def text_of(thing):
    """Returns the error message for a use of a stand-in, or None for any other object."""
    text = getattr(thing, "kjit_missing", None)
    return text if isinstance(text, str) else None


def _stub():
    pass


def _documented_stub():
    """has a docstring"""


_STUBS = _stub.__code__.co_code, _documented_stub.__code__.co_code


def refuse_stub(function, node, source):
    """Rejects the call of a Numba function that has an empty body, because Numba's compiler implements it."""
    code = getattr(function, "__code__", None)
    packages = str(getattr(function, "__module__", "")).split(".")
    is_of_numba = packages[0] == "numba" and packages[1:2] != ["tests"]  # numba.tests has programs for the compiler
    if code is not None and is_of_numba and code.co_code in _STUBS and {*code.co_consts} <= {None, function.__doc__}:
        name = f"{function.__module__}.{function.__name__}"
        raise source.error(node, f"{name}: the body of this function is empty, because only Numba's compiler implements it")


def _same(thing, *rest, **keywords):
    return thing


def _instead(kind):
    """Returns a decorator, with or without arguments, that replaces a function or class by a
    stand-in."""

    def make(thing):
        name, module = thing.__name__, thing.__module__
        return missing(name, module, f"kjit has no {kind}, as `{name}` is one")

    def decorate(thing=None, *arguments, **keywords):
        is_made = isinstance(thing, (type, types.FunctionType)) and not arguments
        return make(thing) if is_made else make

    return decorate


def _two_step(function, *arguments, **keywords):
    """Replaces numba.extending.type_callable: marks `function`, so that compiling a call of it raises
    an error. Calls from Python are not affected."""
    name = getattr(function, "__name__", str(function))
    text = f"`{name}` is defined by numba.extending.type_callable and lower_builtin, which write LLVM IR: define it by overload"
    try:
        function.kjit_missing = text
    except (AttributeError, TypeError):
        raise NotImplementedError(text) from None
    return _same


class _Definition:
    """A name of numba.extending that defines a part of a program's own type. The definition does
    nothing, because no compiled function accepts objects of such a type."""

    def __call__(self, *arguments, **keywords):
        return _same

    @staticmethod
    def register(*arguments, **keywords):
        return _same


class OpenModule(types.ModuleType):
    """A module of Numba in which every name is a stand-in."""

    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return missing(name, self.__name__, f"kjit has no {self.__name__}.{name}")


# Names of numba.experimental.structref and numba.extending. A program's definitions of structures
# and other types do nothing.
_STRUCTS = "kjit has no classes in compiled code (numba.experimental): use records"
STRUCTREF = {
    "StructRefProxy": missing("StructRefProxy", "numba.experimental.structref", _STRUCTS),
    "register": _instead("structure with references (structref)"),
    **dict.fromkeys(("define_proxy", "define_boxing", "define_attributes", "define_constructor"), lambda *arguments: None),
}
EXTENDING = {
    "type_callable": _two_step,
    "intrinsic": _instead("intrinsic of Numba"),
    "models": OpenModule("numba.extending.models"),
    "make_attribute_wrapper": lambda *arguments: None,
    **{
        name: _Definition()
        for name in """overload_classmethod typeof_impl as_numba_type lower_builtin lower_cast
        lower_getattr lower_setattr lower_getattr_generic lower_setattr_generic infer infer_getattr register_model box unbox
        reflect""".split()
    },
    **{
        name: missing(name, "numba.extending", f"kjit has no numba.extending.{name}")
        for name in "NativeValue SentryLiteralArgs BoundLiteralArgs ReduceMixin get_cython_function_address include_path".split()
    },
}
# Stand-ins in the module numba itself, with the reason or a replacement.
NUMBA = {
    **{
        name: missing(name, "numba", f"kjit has no numba.{name}: {reason}")
        for name, reason in {
            "objmode": "there is no object mode: call Python outside of the function",
            "jit_module": "decorate the functions",
            "gdb": "kjit.njit(debug=True) has debug information",
            "gdb_init": "kjit.njit(debug=True) has debug information",
            "gdb_breakpoint": "kjit.njit(debug=True) has debug information",
            "optional": "kjit has no values that may be None at run time",
            "deferred_type": "kjit has no classes",
        }.items()
    },
    "cfunc": _instead("C callback (numba.cfunc)"),
    "stencil": _instead("stencil (numba.stencil): write the loop over prange"),
}
TYPED = {
    name: missing(name, "numba.typed", f"kjit has no numba.typed.{name}: kjit has no lists and dictionaries: use arrays")
    for name in ("List", "Dict")
}
TYPES = {
    name: missing(name, "numba.types", f"kjit has no numba.types.{name}")
    for name in """StructRef ListType DictType Set List FunctionType ExternalFunction ClassType ClassInstanceType
    pyobject PyObject Optional DeferredType TypeRef Module Function Dummy Opaque Phantom SetType
    LiteralStrKeyDict LiteralList""".split()
}
# Modules of Numba that programs import to extend it. Every name in them is a stand-in.
OPEN = """numba.core.cgutils numba.core.compiler numba.core.compiler_machinery numba.core.datamodel numba.core.datamodel.models
numba.core.imputils numba.core.ir numba.core.ir_utils numba.core.runtime numba.core.serialize numba.core.typeconv numba.core.typed_passes
numba.core.untyped_passes numba.core.typeinfer numba.core.typing.templates numba.core.typing.typeof numba.core.unsafe
numba.core.unsafe.refcount numba.core.utils numba.core.caching numba.core.codegen numba.core.cpu numba.core.target_extension
numba.core.ccallback numba.np.arrayobj numba.np.unsafe numba.np.unsafe.ndarray numba.np.npyimpl numba.np.linalg numba.np.arraymath
numba.np.ufunc numba.parfors numba.parfors.parfor numba.pycc numba.stencils numba.stencils.stencil numba.cpython
numba.cpython.unsafe numba.cpython.unsafe.tuple numba.cpython.unsafe.numbers numba.cpython.unicode numba.typed.typedlist
numba.typed.typeddict""".split()


def jitclass(class_or_spec=None, spec=None):
    """Replaces numba.experimental.jitclass. Constructing an object of the class raises an error."""
    make = _instead("class in compiled code (numba.experimental.jitclass): use records, which `jitclass` does not make")
    return make(class_or_spec) if isinstance(class_or_spec, type) else make

"""The columns library from Python: it accepts columns of any library with Arrow's PyCapsule protocol (`__arrow_c_array__`), and
pa.array() accepts its results in the same way. No package is needed."""
import ctypes
import os

AGGREGATIONS = {name: i for i, name in enumerate(("sum", "count", "min", "max", "mean"))}
NULLS = {name: i for i, name in enumerate(("propagate", "computed", "handled"))}  # the values of column_nulls in columns.h
DROP_NULL_KEYS = 1


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                        ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", ReleaseSchema), ("private_data", ctypes.c_void_p)]
ArrowArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                       ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p), ("release", ReleaseArray), ("private_data", ctypes.c_void_p)]


class Aggregate(ctypes.Structure):
    _fields_ = [("values", ctypes.c_void_p), ("aggregation", ctypes.c_int)]


# ---- capsules ----

_python = ctypes.pythonapi
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
# Like _pointer_of, for a destructor: its capsule has no references left.
_pointer_of_dying = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _python))
_alive = {}  # the structs that capsules hold, by address


def _destroy(capsule, name):
    struct = _alive.pop(_pointer_of_dying(capsule, name))
    if struct.release:  # if no consumer has moved the array
        struct.release(ctypes.byref(struct))


_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_destroy_schema = _Destructor(lambda capsule: _destroy(capsule, b"arrow_schema"))
_destroy_array = _Destructor(lambda capsule: _destroy(capsule, b"arrow_array"))


def _capsule(struct, name, destructor):
    address = ctypes.addressof(struct)
    _alive[address] = struct
    return _python.PyCapsule_New(address, name, ctypes.cast(destructor, ctypes.c_void_p))


# ---- the library ----


class Error(Exception):
    pass


class Engine:
    """The library on one device. library: the path of libcolumns.so."""

    def __init__(self, library, device="cpu", folder=os.path.dirname(os.path.abspath(__file__))):
        self.library = ctypes.CDLL(library)
        self.library.columns_get_error.restype = ctypes.c_char_p
        self.library.column_get_length.restype = ctypes.c_int64
        self.engine = ctypes.c_void_p()
        self.check(self.library.columns_open(device.encode(), folder.encode(), ctypes.byref(self.engine)))

    def __del__(self):
        self.library.columns_close(self.engine)

    def check(self, status):
        if status:
            raise Error(self.library.columns_get_error(self.engine).decode())

    def take(self, array):
        """Returns a column for an object with __arrow_c_array__. On the CPU the column uses the object's memory without a
        copy."""
        schema, data = array.__arrow_c_array__()
        taken = ctypes.c_void_p()
        self.check(self.library.columns_take(self.engine, ctypes.c_void_p(_python.PyCapsule_GetPointer(schema, b"arrow_schema")),
                                             ctypes.c_void_p(_python.PyCapsule_GetPointer(data, b"arrow_array")), ctypes.byref(taken)))
        return Column(self, taken)

    def define(self, text, name, operand_count, nulls="propagate"):
        function = ctypes.c_void_p()
        self.check(self.library.columns_define(self.engine, text.encode(), name.encode(), ctypes.c_size_t(operand_count), NULLS[nulls], ctypes.byref(function)))
        return Function(self, function, operand_count)

    def filter(self, predicate, operands, columns):
        """Returns the rows of the columns for which the predicate is true."""
        results = (ctypes.c_void_p * len(columns))()
        self.check(self.library.columns_filter(self.engine, predicate.handle, predicate.list(operands), _list(columns), ctypes.c_size_t(len(columns)), results))
        return [Column(self, ctypes.c_void_p(r)) for r in results]

    def group(self, keys, aggregates, flags=0):
        """Returns the keys of the groups, and the aggregates. aggregates: pairs such as (column, "sum")."""
        pairs = (Aggregate * max(1, len(aggregates)))(*(Aggregate(c.handle, AGGREGATIONS[name]) for c, name in aggregates))
        results = (ctypes.c_void_p * (len(keys) + len(aggregates)))()
        self.check(self.library.columns_group(self.engine, _list(keys), ctypes.c_size_t(len(keys)), pairs, ctypes.c_size_t(len(aggregates)), flags, results))
        return [Column(self, ctypes.c_void_p(r)) for r in results]


def _list(columns):
    return (ctypes.c_void_p * max(1, len(columns)))(*(c.handle for c in columns))


class Function:

    def __init__(self, engine, handle, operand_count):
        self.engine, self.handle, self.operand_count = engine, handle, operand_count

    def __del__(self):
        self.engine.library.column_function_release(self.handle)

    def list(self, operands):
        if len(operands) != self.operand_count:
            raise Error(f"the function takes {self.operand_count} operand{'s' * (self.operand_count != 1)}, got {len(operands)}")
        return _list(operands)

    def __call__(self, *operands):
        result = ctypes.c_void_p()
        self.engine.check(self.engine.library.columns_apply(self.engine.engine, self.handle, self.list(operands), ctypes.byref(result)))
        return Column(self.engine, result)


class Column:
    """pa.array(column) is an array of pyarrow's, on the CPU without a copy."""

    def __init__(self, engine, handle):
        self.engine, self.handle = engine, handle

    def __del__(self):
        self.engine.library.column_release(self.handle)

    def __len__(self):
        return self.engine.library.column_get_length(self.handle)

    def __arrow_c_array__(self, requested_schema=None):
        schema, array = ArrowSchema(), ArrowArray()
        self.engine.check(self.engine.library.columns_export(self.handle, ctypes.byref(schema), ctypes.byref(array)))
        return _capsule(schema, b"arrow_schema", _destroy_schema), _capsule(array, b"arrow_array", _destroy_array)

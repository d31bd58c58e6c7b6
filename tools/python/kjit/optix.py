"""Python functions as programs of NVIDIA OptiX: kjit compiles them to PTX, which OptiX loads.

A program is a function without parameters. Its name begins with its kind in OptiX, such as
`__raygen__`, `__miss__` or `__closesthit__`. It follows the rules of kjit.jit, calls the functions
of this module, and reads the launch parameters through an object of the class LaunchParams:

    params = optix.LaunchParams("params", image=kjit.u32[:, :], scene=kjit.u64, light=(kjit.f32, 3))

    def __closesthit__depth():
        optix.set_payload(0, optix.ray_tmax())

    text = optix.compile(__closesthit__depth)

kjit does not call OptiX. A package such as pyoptix makes modules and pipelines from the PTX and
launches them.
"""

import ast
import re

from . import _errors, _functions, _records, dtypes
from .frontend.words import Form as _Form

_KINDS = ("raygen", "miss", "closesthit", "anyhit", "intersection", "exception", "direct_callable", "continuation_callable")

NONE, DISABLE_ANYHIT, ENFORCE_ANYHIT, TERMINATE_ON_FIRST_HIT = 0, 1, 2, 4
DISABLE_CLOSESTHIT, CULL_BACK_FACING_TRIANGLES, CULL_FRONT_FACING_TRIANGLES = 8, 16, 32


class _Word(_Form):
    """A function whose text calls functions in the kernel IR module `optix`."""

    def expand(self, emitter, call):
        emitter.builder.import_module("optix")
        return super().expand(emitter, call)


def _word(name, parameters, doc, text=None):
    names = [part.split("=")[0] for part in parameters.split()]
    return _Word(name, parameters, text or f"optix_{name}({', '.join('{' + n + '}' for n in names)})", doc)


launch_index = _word("launch_index", "", "The position of this call of the ray generation program in the launch: a tuple of three uint32.")
launch_dimensions = _word("launch_dimensions", "", "The extents of the launch: a tuple of three uint32.")
trace = _word(
    "trace",
    "scene origin direction tmin tmax payload time=0f32 mask=255 flags=0 sbt_offset=0 sbt_stride=0 miss=0",
    "Traces a ray through the scene, and returns the payload after the programs that OptiX called have changed it. scene is a "
    "traversable handle. origin and direction are tuples of three numbers. The ray has the parameters tmin to tmax. payload is a tuple of 1 to 32 "
    "values of 32 bits each, such as float32 and uint32. The result is a tuple of the same types. mask has the bits of the instances "
    "that the ray may hit. flags is a sum of ray flags, such as TERMINATE_ON_FIRST_HIT. sbt_offset, sbt_stride and miss select "
    "records of the shader binding table.",
)
set_payload = _word("set_payload", "index value", "Sets a value of the ray's payload. index is known when the program is compiled.")
get_payload = _word("get_payload", "index dtype=u32", "Returns a value of the ray's payload as a value of a type of 32 bits.")
ray_origin = _word("ray_origin", "", "The origin of the ray in the scene: a tuple of three float32.")
ray_direction = _word("ray_direction", "", "The direction of the ray in the scene: a tuple of three float32.")
object_ray_origin = _word("object_ray_origin", "", "The origin of the ray in the space of the object: a tuple of three float32.")
object_ray_direction = _word("object_ray_direction", "", "The direction of the ray in the space of the object: a tuple of three float32.")
ray_tmin = _word("ray_tmin", "", "The smallest parameter of the ray: a float32.")
ray_tmax = _word("ray_tmax", "", "The parameter of the hit, or the largest parameter of the ray if there is no hit yet: a float32.")
ray_time = _word("ray_time", "", "The time of the ray, for motion blur: a float32.")
ray_flags = _word("ray_flags", "", "The flags of the ray: a uint32.")
ray_visibility_mask = _word("ray_visibility_mask", "", "The bits of the instances that the ray may hit: a uint32.")
primitive_index = _word("primitive_index", "", "The index of the primitive that was hit in its build input: a uint32.")
sbt_index = _word("sbt_index", "", "The index of the shader binding table's record in the geometry's acceleration structure: a uint32.")
instance_id = _word("instance_id", "", "The number that the application gave to the instance: a uint32.")
instance_index = _word("instance_index", "", "The index of the instance in its acceleration structure: a uint32.")
hit_kind = _word("hit_kind", "", "The kind of the hit: 254 for the front and 255 for the back of a triangle, or the number that an intersection program reported.")
triangle_barycentrics = _word("triangle_barycentrics", "", "The barycentric coordinates of the hit in its triangle: a tuple of two float32.")
triangle_vertices = _word(
    "triangle_vertices",
    "",
    "The corners of the triangle that was hit: a tuple of nine float32, x, y and z of each corner. The acceleration structure has to be "
    "built with random access to the vertices.",
)
sphere = _word(
    "sphere",
    "",
    "The sphere that was hit: a tuple of its centre and its radius, four float32. The acceleration structure has to be built with random "
    "access to the vertices.",
)
report_intersection = _word(
    "report_intersection",
    "t kind attributes",
    "Reports a hit at parameter t of the ray in an intersection program, and returns whether OptiX accepts it. kind is 0 to 127. attributes "
    "is a tuple of 1 to 8 values of 32 bits each.",
)
attribute = _word("attribute", "index dtype=u32", "Returns attribute 0 to 7 of the hit as a value of a type of 32 bits. index is known when the program is compiled.")
terminate_ray = _word("terminate_ray", "", "Ends the ray in an any-hit program, and accepts the hit for which OptiX called the program.")
ignore_intersection = _word("ignore_intersection", "", "Rejects the hit for which OptiX called the any-hit program.")
sbt_data = _word("sbt_data", "", "The address of the data after the header in this program's record of the shader binding table: a uint64.")


class LaunchParams:
    """The launch parameters of a pipeline, which all programs of the pipeline read.

    name: the pipelineLaunchParamsVariableName of the pipeline. Each keyword is a field. Its value
    is a type such as kjit.f32 or a NumPy dtype for a single value, a pair `(kjit.f32, 3)` for a
    small array of values, or an array type such as `kjit.u32[:, :]` for a contiguous row-major
    device array. A program reads a field as an attribute: `params.light[0]`, `params.image[y, x]`.

    `fields` has the names of the fields, and `dtype` is the NumPy dtype of the parameters in
    memory. Raises TypeError for another type, and ValueError for a name that is invalid in OptiX or
    the kernel IR.
    """

    def __init__(self, name, /, **fields):
        import numpy

        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            raise ValueError(f"the name of launch parameters must be an identifier such as 'params', not {name!r}")
        if not fields:
            raise ValueError("launch parameters must have at least one field: LaunchParams('params', scene=kjit.u64)")
        self.name, self.fields, self._arrays, parts = name, tuple(fields), {}, []
        for field, given in fields.items():
            parts += self._parts(field, given)
        self.dtype = numpy.dtype(parts, align=True)

    def _parts(self, field, given):
        """Returns the dtype fields for one field of the parameters. An array is its address and its
        extents."""
        import numpy

        if isinstance(given, dtypes.DType) and "[" in given.text:
            element, _, dims = given.text.partition("[")
            rank = dims.count(":") - dims.count("::1")
            self._arrays[field] = (element, rank)
            return [(field, numpy.uint64), *((f"{field}_extent_{k}", numpy.int64) for k in range(rank))]
        kind, shape = given if isinstance(given, tuple) and len(given) == 2 else (given, ())
        try:
            dtype = numpy.dtype(kind.dtype if isinstance(kind, dtypes.DType) else kind)
        except TypeError:
            raise TypeError(f"field {field!r}: {given!r} is neither a type, nor a pair of a type and a shape, nor an array type") from None
        if dtypes.name_of(dtype) is None and not _records.is_record(dtype):
            raise TypeError(f"field {field!r}: kernels have no type for NumPy's {dtype}")
        return [(field, dtype, shape)]

    def pack(self, **values):
        """Returns the parameters as a NumPy array with one element of `dtype`. The program copies
        its bytes to the device.

        values: a value for each field. An array is a contiguous device array with
        `__cuda_array_interface__`, such as a kjit, CuPy or PyTorch array, with the field's element
        type and number of dimensions. The caller has to keep it alive. Raises TypeError if a value
        does not fit its field, or if fields are missing or unknown.
        """
        import numpy

        missing, unknown = [n for n in self.fields if n not in values], [n for n in values if n not in self.fields]
        if missing or unknown:
            text = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(unknown)}"
            raise TypeError(f"the launch parameters {self.name!r} have the fields {', '.join(self.fields)}; {text}")
        packed = numpy.zeros(1, self.dtype)
        for field, value in values.items():
            if field not in self._arrays:
                try:
                    packed[field] = value
                except (TypeError, ValueError, OverflowError) as error:
                    raise TypeError(f"field {field!r}: {value!r} does not fit {self.dtype[field]}: {error}") from None
                continue
            address, extents = self._described(field, value)
            packed[field] = address
            for k, extent in enumerate(extents):
                packed[f"{field}_extent_{k}"] = extent
        return packed

    def _described(self, field, value):
        """Returns (address, extents) of an array. Raises TypeError if the array does not fit the
        field."""
        import numpy

        element, rank = self._arrays[field]
        described = getattr(value, "__cuda_array_interface__", None)
        wanted = f"field {field!r} is an array of a device with {rank} dimensions and elements {element}, row by row without gaps"
        if described is None:
            raise TypeError(f"{wanted}; {type(value).__name__} has no __cuda_array_interface__")
        dtype, shape, strides = numpy.dtype(described["typestr"]), described["shape"], described.get("strides")
        rows = tuple(dtype.itemsize * int(numpy.prod(shape[k + 1 :])) for k in range(len(shape)))
        if dtypes.name_of(dtype) != element or len(shape) != rank or strides is not None and tuple(strides) != rows:
            raise TypeError(f"{wanted}; this one has {len(shape)} dimensions, elements {dtype} and strides {strides or rows}")
        return described["data"][0], shape

    def kernel_attribute(self, emitter, node):
        """Returns a field's text in a kernel."""
        if node.attr not in self.fields:
            raise emitter.error(node, f"the launch parameters have no `{node.attr}`; they have {', '.join(self.fields)}")
        symbol = emitter.builder.outside(self.name, self.dtype, self)
        emitter.used.add(symbol)
        text = f"{symbol}.{_records.field_name(node.attr)}"
        if node.attr in self._arrays:
            element, rank = self._arrays[node.attr]
            extents = ", ".join(f"{symbol}.{_records.field_name(f'{node.attr}_extent_{k}')}" for k in range(rank))
            text = f"view({element}[{extents}], bitcast({element}*, {text}))"
        return [emitter.source.place(node), text]

    def check_assignment(self, emitter, target):
        """Raises an error if a program assigns to a parameter itself, and not to an element in an
        array."""
        base = target
        while not isinstance(base.value, ast.Name):
            base = base.value
        if base is target or base.attr not in self._arrays:
            raise emitter.error(target, f"`{base.attr}` is a launch parameter: a program can change the elements of its arrays only")

    def __repr__(self):
        return f"<kjit.optix.LaunchParams {self.name!r}: {', '.join(self.fields)}>"


def compile(function, target="sm_75"):
    """Compiles a program and returns its PTX, a string.

    function: a Python function or a kjit.jit kernel without parameters, whose name begins with
    `__raygen__`, `__miss__`, `__closesthit__`, `__anyhit__`, `__intersection__` or another kind of
    OptiX program. target: the GPU architecture, "sm_75" or later; OptiX accepts code for the GPU's
    architecture and for earlier ones.

    Raises kjit.Error with the line of a construct that kjit cannot compile. This includes `raise`
    and the `checks` of kjit.jit, because they need kernel parameters. Raises TypeError or
    ValueError for another name, or for a function with parameters.
    """
    kernel = function if getattr(function, "is_kjit_kernel", False) else _functions.jit(function)
    python = kernel.py_func
    name = python.__name__
    if not any(name.startswith(f"__{kind}__") for kind in _KINDS):
        raise ValueError(
            f"the name of an OptiX program must begin with its kind: `{name}` begins with none of {', '.join(f'__{kind}__' for kind in _KINDS)}"
        )
    if python.__code__.co_argcount or python.__code__.co_kwonlyargcount:
        raise TypeError(f"OptiX calls `{name}` without arguments: it reads launch parameters through an object of kjit.optix.LaunchParams")
    text = kernel.inspect("ptx", "", target, lines=False)
    if not re.search(rf"\.entry {re.escape(name)}\s*\(\s*\)", text):
        raise _errors.Error(f"OptiX passes no arguments to a program, but `{name}` needs some for `raise`, `assert` or run-time checks; remove these")
    return text

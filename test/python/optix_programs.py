# RUN: %kjit-python %s
"""OptiX programs from Python: their PTX, launch parameters, and errors. examples/python/ray_tracing.py runs such
programs if OptiX is installed."""
import re

import kjit
import numpy as np
import seeds
from kjit import optix

params = optix.LaunchParams("params", image=kjit.u32[:, :], scene=kjit.u64, flag=np.int8, light=(kjit.f32, 3), table=np.dtype([("a", "i4"), ("b", "f8")], align=True))


def raises(error, text, call):
    try:
        call()
    except error as caught:
        assert text in str(caught), str(caught)
    else:
        raise AssertionError(f"no {error.__name__}: {text}")


# ---- memory ----

# The offsets are those of C for the same struct.
assert [params.dtype.fields[n][1] for n in params.dtype.names] == [0, 8, 16, 24, 32, 36, 48] and params.dtype.itemsize == 64, params.dtype


class Image:
    def __init__(self, typestr="<u4", shape=(3, 5), strides=None):
        self.__cuda_array_interface__ = {"typestr": typestr, "shape": shape, "strides": strides, "data": (0x1230, False), "version": 3}


rng = seeds.fresh_generator()
light, scene = rng.standard_normal(3).astype(np.float32), int(rng.integers(1 << 62))
packed = params.pack(image=Image(), scene=scene, flag=-3, light=light, table=(7, 2.5))
raw = packed.tobytes()
assert np.frombuffer(raw, "<u8", 4).tolist() == [0x1230, 3, 5, scene]
assert np.frombuffer(raw, "<i1", 1, 32)[0] == -3 and (np.frombuffer(raw, "<f4", 3, 36) == light).all()
assert np.frombuffer(raw, "<i4", 1, 48)[0] == 7 and np.frombuffer(raw, "<f8", 1, 56)[0] == 2.5
rest = {"scene": 1, "flag": 0, "light": light, "table": (0, 0)}
params.pack(image=Image(strides=(20, 4)), **rest)
raises(TypeError, "row by row without gaps; this one has 2 dimensions, elements uint32 and strides (24, 4)", lambda: params.pack(image=Image(strides=(24, 4)), **rest))
raises(TypeError, "elements float32", lambda: params.pack(image=Image("<f4"), **rest))
raises(TypeError, "this one has 1 dimensions", lambda: params.pack(image=Image(shape=(3,)), **rest))
raises(TypeError, "ndarray has no __cuda_array_interface__", lambda: params.pack(image=np.zeros((3, 5), np.uint32), **rest))
raises(TypeError, "missing: image", lambda: params.pack(**rest))
raises(TypeError, "field 'light': 'no' does not fit", lambda: params.pack(image=Image(), **rest | {"light": "no"}))
raises(TypeError, "field 'light': [1, 2] does not fit", lambda: params.pack(image=Image(), **rest | {"light": [1, 2]}))
# a field that has the name of an array's extent
plain = optix.LaunchParams("plain", a_extent_0=np.float32, b=np.float32)
raises(TypeError, "missing: a_extent_0", lambda: plain.pack(b=1))
assert plain.pack(a_extent_0=2, b=3)["a_extent_0"] == 2
raises(TypeError, "unknown: x", lambda: params.pack(image=Image(), x=1, **rest))
raises(TypeError, "'x': 'no type' is neither a type", lambda: optix.LaunchParams("p", x="no type"))
raises(TypeError, "kernels have no type for NumPy's", lambda: optix.LaunchParams("p", x=np.dtype("O")))
raises(ValueError, "not '2p'", lambda: optix.LaunchParams("2p", x=kjit.f32))
raises(ValueError, "at least one field", lambda: optix.LaunchParams("p"))

# ---- programs ----


def helper(x):
    return x * params.light[1]


def __raygen__all():
    x, y, _ = optix.launch_index()
    t, kind = optix.trace(params.scene, (0, 0, helper(kjit.f32(x))), (0, 0, 1), 0.0, 1e9, payload=(kjit.f32(2), kjit.u32(3)), flags=optix.TERMINATE_ON_FIRST_HIT)
    params.image[y, x] = kind + kjit.u32(t) + kjit.u32(params.table.a) + kjit.u32(params.image.shape[1])


def __closesthit__all():
    optix.set_payload(0, optix.ray_tmax() + optix.triangle_barycentrics()[1] + optix.triangle_vertices()[8] + optix.sphere()[3])
    optix.set_payload(1, optix.primitive_index() + optix.sbt_index() + optix.instance_id() + optix.instance_index() + optix.hit_kind())
    optix.set_payload(2, optix.get_payload(2, kjit.f32) + optix.ray_tmin() + optix.ray_time() + optix.ray_origin()[0] + optix.ray_direction()[1])
    optix.set_payload(3, optix.get_payload(3) | optix.ray_flags() | optix.ray_visibility_mask() | kjit.u32(optix.sbt_data()))
    optix.set_payload(4, optix.launch_dimensions()[2])


def __anyhit__all():
    if optix.attribute(1, kjit.f32) > optix.object_ray_origin()[0] + optix.object_ray_direction()[2]:
        optix.ignore_intersection()
    else:
        optix.terminate_ray()


def __intersection__all():
    optix.report_intersection(1.5, 2, (kjit.f32(1), kjit.i32(2), kjit.u32(3)))


texts = {f.__name__: optix.compile(f) for f in (__raygen__all, __closesthit__all, __anyhit__all, __intersection__all)}
for name, text in texts.items():
    assert re.search(rf"\.visible \.entry {name}\s*\(\s*\)", text), text
assert ".visible .const .align 8 .b8 params[64];" in texts["__raygen__all"]
assert "_optix_report_intersection_3, " in texts["__intersection__all"]
# The programs above use every word, so the text of each word has been compiled.
words = {name for name in dir(optix) if type(getattr(optix, name)).__name__ == "_Word"}
assert words and words <= set(re.findall(r"optix\.(\w+)\(", open(__file__).read().partition("# ---- mistakes")[0])), words
assert len(set(re.findall(r"_optix_\w+", "".join(texts.values())))) == 40
assert ".target sm_90" in optix.compile(__anyhit__all, "sm_90")
assert optix.compile(kjit.jit(__anyhit__all)) == texts["__anyhit__all"]


# ---- mistakes ----


def __raygen__field():
    params.image[0, 0] = params.lihgt[0]


def __raygen__extent():
    params.image[0, 0] = params.image_extent_0


def __raygen__assigns():
    params.scene = 3


def __raygen__changes():
    params.light[0] = 3.0


def __raygen__fails():
    if optix.launch_index()[0] > 3:
        raise ValueError("text")


def __raygen__wide():
    optix.set_payload(0, kjit.f64(1))


def __raygen__argument(x):
    optix.set_payload(0, x)


def __miss__copies():
    params.image[0, 0] = params.image[0, 1]


def camera():
    optix.set_payload(0, kjit.u32(1))


raises(kjit.Error, "the launch parameters have no `lihgt`; they have image, scene, flag, light, table", lambda: optix.compile(__raygen__field))
raises(kjit.Error, "the launch parameters have no `image_extent_0`", lambda: optix.compile(__raygen__extent))
raises(kjit.Error, "`scene` is a launch parameter: a program can change the elements of its arrays only", lambda: optix.compile(__raygen__assigns))
raises(kjit.Error, "`light` is a launch parameter", lambda: optix.compile(__raygen__changes))
raises(kjit.Error, "OptiX passes no arguments to a program, but `__raygen__fails` needs some", lambda: optix.compile(__raygen__fails))
raises(kjit.Error, "float64 and uint32", lambda: optix.compile(__raygen__wide))
raises(TypeError, "OptiX calls `__raygen__argument` without arguments", lambda: optix.compile(__raygen__argument))
raises(ValueError, "`camera` begins with none of __raygen__", lambda: optix.compile(camera))
raises(TypeError, "trace can be used in a kernel only", lambda: optix.trace(1))
raises(kjit.Error, "`params` has no value", lambda: kjit.jit(__miss__copies)[1, 1]())
if kjit.device().kind == "cpu":
    raises(kjit.Error, "`ptx` is not supported on the CPU", lambda: kjit.jit(__anyhit__all)[1, 1]())
other = optix.LaunchParams("params", x=kjit.f32)


def __raygen__two():
    params.image[0, 0] = kjit.u32(other.x)


raises(kjit.Error, "two objects of the module have the name `params`", lambda: optix.compile(__raygen__two))
print("optix_programs: passed")

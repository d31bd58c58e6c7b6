"""A picture of spheres and a torus with shadows and reflections. NVIDIA OptiX traces the rays and
calls programs that are written in Python below. NumPy traces the same rays through the same scene,
and the two pictures are compared.

OptiX needs an NVIDIA GPU and the package pyoptix. Without them the programs are only compiled, and
NumPy alone makes the picture. `ray_tracing.py picture.png` writes a larger picture.
"""

import struct
import sys
import zlib

import kjit
import numpy as np
from kjit import optix

try:
    import optix as driver
except ImportError:
    driver = None

SPHERES = np.array([(-1.3, 0.6, 0.4, 0.6), (0.2, 0.35, 1.5, 0.35), (1.5, 0.8, 0.6, 0.8), (0.6, 0.2, 2.2, 0.2), (-0.6, 0.25, 1.9, 0.25)], np.float32)
# Red, green, blue and the reflected share of light, for the ground, the torus and each sphere.
COLORS = np.array(
    [(0.8, 0.8, 0.75, 0), (0.9, 0.65, 0.2, 0.15), (0.9, 0.2, 0.2, 0.1), (0.2, 0.6, 0.9, 0.2), (0.9, 0.9, 0.9, 0.8), (0.3, 0.8, 0.4, 0), (0.7, 0.4, 0.9, 0.1)],
    np.float32,
)
EYE, TARGET = np.array([0.5, 1.9, 6.0], np.float32), np.array([0.1, 0.55, 0.0], np.float32)
SUN = np.array([0.55, 0.75, 0.35], np.float32) / np.float32(np.linalg.norm([0.55, 0.75, 0.35]))
AMBIENT, BOUNCES, GAP = 0.25, 4, 1e-3


def make_triangles(n=28, m=14):
    """Returns the corners of all triangles: first two of the ground, then a torus that stands on
    it."""
    around, across = np.meshgrid(np.arange(n + 1) * (2 * np.pi / n), np.arange(m + 1) * (2 * np.pi / m), indexing="ij")
    radius = 1.1 + 0.4 * np.cos(across)
    points = np.stack([0.1 + radius * np.cos(around), 1.5 + radius * np.sin(around), -1.2 + 0.4 * np.sin(across)], -1)
    a, b, c, d = points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]
    torus = np.concatenate([np.stack([a, b, c], 2).reshape(-1, 3, 3), np.stack([a, c, d], 2).reshape(-1, 3, 3)])
    ground = np.array([[(-30, 0, 30), (30, 0, 30), (30, 0, -30)], [(-30, 0, 30), (30, 0, -30), (-30, 0, -30)]])
    return np.concatenate([ground, torus]).astype(np.float32)


# ---- the programs that OptiX calls ----

params = optix.LaunchParams(
    "params",
    image=kjit.u32[:, :],
    spheres=kjit.f32[:, :],
    colors=kjit.f32[:, :],
    scene=kjit.u64,
    **{name: (kjit.f32, 3) for name in ("eye", "right", "up", "ahead", "sun")},
)


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def along(origin, t, direction):
    return (origin[0] + t * direction[0], origin[1] + t * direction[1], origin[2] + t * direction[2])


def normalized(v):
    scale = 1 / kjit.sqrt(dot(v, v))
    return (v[0] * scale, v[1] * scale, v[2] * scale)


def as_byte(x):
    return kjit.u32(min(max(x, 0.0), 1.0) * 255.0 + 0.5)


def is_lit(point, sun):
    """Returns whether nothing lies between a point and the sun. The first hit ends the ray, and
    only the miss program sets the payload."""
    ends = optix.TERMINATE_ON_FIRST_HIT + optix.DISABLE_CLOSESTHIT
    return optix.trace(params.scene, point, sun, 0.0, 1e9, payload=(kjit.u32(0),), flags=ends, miss=1)[0] == 1


def __raygen__camera():
    x, y, _ = optix.launch_index()
    width, height, _ = optix.launch_dimensions()
    a = 2 * (kjit.f32(x) + 0.5) / kjit.f32(width) - 1
    b = 1 - 2 * (kjit.f32(y) + 0.5) / kjit.f32(height)
    sun = (params.sun[0], params.sun[1], params.sun[2])
    origin = (params.eye[0], params.eye[1], params.eye[2])
    ahead = (params.ahead[0], params.ahead[1], params.ahead[2])
    direction = normalized(along(along(ahead, a, params.right), b, params.up))
    red = green = blue = kjit.f32(0)
    weight, zero = kjit.f32(1), kjit.f32(0)
    for bounce in range(BOUNCES):
        t, nx, ny, nz, what = optix.trace(params.scene, origin, direction, 0.0, 1e9, payload=(zero, zero, zero, zero, kjit.u32(0)))
        if t < 0:
            red += weight * (0.75 - 0.45 * direction[1])
            green += weight * (0.85 - 0.3 * direction[1])
            blue += weight
            break
        point, normal = along(origin, t, direction), (nx, ny, nz)
        shade = kjit.f32(1)
        if what == 0 and (kjit.i32(kjit.floor(point[0])) + kjit.i32(kjit.floor(point[2]))) % 2 != 0:
            shade = kjit.f32(0.55)
        origin = along(point, GAP, normal)
        light = max(dot(normal, sun), 0.0)
        if light > 0 and not is_lit(origin, sun):
            light = zero
        shade *= AMBIENT + (1 - AMBIENT) * light
        mirror = params.colors[what, 3]
        red += weight * (1 - mirror) * shade * params.colors[what, 0]
        green += weight * (1 - mirror) * shade * params.colors[what, 1]
        blue += weight * (1 - mirror) * shade * params.colors[what, 2]
        weight *= mirror
        if weight < 0.01:
            break
        direction = along(direction, -2 * dot(direction, normal), normal)
    params.image[y, x] = as_byte(red) | as_byte(green) << 8 | as_byte(blue) << 16 | 0xFF000000


def __miss__sky():
    optix.set_payload(0, kjit.f32(-1))


def __miss__sun():
    optix.set_payload(0, kjit.u32(1))


def report(normal, what):
    facing = -1 if dot(normal, optix.ray_direction()) > 0 else 1
    optix.set_payload(0, optix.ray_tmax())
    optix.set_payload(1, normal[0] * facing)
    optix.set_payload(2, normal[1] * facing)
    optix.set_payload(3, normal[2] * facing)
    optix.set_payload(4, kjit.u32(what))


def __closesthit__mesh():
    ax, ay, az, bx, by, bz, cx, cy, cz = optix.triangle_vertices()
    b, c = (bx - ax, by - ay, bz - az), (cx - ax, cy - ay, cz - az)
    normal = (b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0])
    report(normalized(normal), 0 if optix.primitive_index() < 2 else 1)


def __intersection__sphere():
    i = optix.primitive_index()
    origin, direction, radius = optix.object_ray_origin(), optix.object_ray_direction(), params.spheres[i, 3]
    q = (origin[0] - params.spheres[i, 0], origin[1] - params.spheres[i, 1], origin[2] - params.spheres[i, 2])
    half = dot(q, direction)
    root = half * half - dot(q, q) + radius * radius
    if root >= 0:
        t = -half - kjit.sqrt(root)
        hit = along(q, t, direction)
        optix.report_intersection(t, 0, (hit[0] / radius, hit[1] / radius, hit[2] / radius))


def __closesthit__sphere():
    normal = (optix.attribute(0, kjit.f32), optix.attribute(1, kjit.f32), optix.attribute(2, kjit.f32))
    report(normal, 2 + optix.primitive_index())


# ---- OptiX ----


def on_gpu(values):
    return kjit.array(np.ascontiguousarray(values), device="cuda")


def address(array):
    return array.__cuda_array_interface__["data"][0]


def build(context, build_input):
    """Returns (the handle of an acceleration structure, its memory)."""
    options = [driver.AccelBuildOptions(buildFlags=int(driver.BUILD_FLAG_ALLOW_RANDOM_VERTEX_ACCESS), operation=driver.BUILD_OPERATION_BUILD)]
    sizes = context.accelComputeMemoryUsage(options, [build_input])
    work, memory = on_gpu(np.zeros(sizes.tempSizeInBytes, np.uint8)), on_gpu(np.zeros(sizes.outputSizeInBytes, np.uint8))
    handle = context.accelBuild(0, options, [build_input], address(work), sizes.tempSizeInBytes, address(memory), sizes.outputSizeInBytes, [])
    return handle, (work, memory)


def build_scene(context, triangles):
    """Returns (the handle of the scene with an instance of the mesh and one of the spheres, the
    objects that must stay alive)."""
    corners = on_gpu(triangles)
    mesh = driver.BuildInputTriangleArray()
    mesh.vertexFormat, mesh.numVertices, mesh.vertexBuffers = driver.VERTEX_FORMAT_FLOAT3, 3 * len(triangles), [address(corners)]
    mesh.flags, mesh.numSbtRecords = [driver.GEOMETRY_FLAG_DISABLE_ANYHIT], 1
    boxes = on_gpu(np.concatenate([SPHERES[:, :3] - SPHERES[:, 3:], SPHERES[:, :3] + SPHERES[:, 3:]], 1))
    balls = driver.BuildInputCustomPrimitiveArray(
        aabbBuffers=[address(boxes)], numPrimitives=len(SPHERES), flags=[driver.GEOMETRY_FLAG_DISABLE_ANYHIT], numSbtRecords=1
    )
    parts = [build(context, mesh), build(context, balls)]
    instances = [
        driver.Instance([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0], instanceId=k, sbtOffset=k, visibilityMask=255, flags=0, traversableHandle=handle)
        for k, (handle, _) in enumerate(parts)
    ]
    listed = on_gpu(np.frombuffer(driver.getDeviceRepresentation(instances), np.uint8))
    handle, memory = build(context, driver.BuildInputInstanceArray(instances=address(listed), numInstances=len(instances)))
    return handle, (corners, boxes, parts, listed, memory)


def make_records(groups):
    """Returns records of the shader binding table, which contain only the header of their program."""
    size = -(-driver.SBT_RECORD_HEADER_SIZE // driver.SBT_RECORD_ALIGNMENT) * driver.SBT_RECORD_ALIGNMENT
    records = np.zeros((len(groups), size), np.uint8)
    for record, group in zip(records, groups):
        driver.sbtRecordPackHeader(group, record)
    return on_gpu(records), size


def make_pipeline(context, programs):
    """Returns (the pipeline, the shader binding table, the objects that must stay alive). programs:
    PTX by name."""
    options = driver.PipelineCompileOptions(
        usesMotionBlur=False,
        traversableGraphFlags=int(driver.TRAVERSABLE_GRAPH_FLAG_ALLOW_SINGLE_LEVEL_INSTANCING),
        numPayloadValues=5,
        numAttributeValues=3,
        exceptionFlags=int(driver.EXCEPTION_FLAG_NONE),
        pipelineLaunchParamsVariableName=params.name,
        usesPrimitiveTypeFlags=int(driver.PRIMITIVE_TYPE_FLAGS_TRIANGLE) | int(driver.PRIMITIVE_TYPE_FLAGS_CUSTOM),
    )
    modules = {name: context.moduleCreate(driver.ModuleCompileOptions(), options, text)[0] for name, text in programs.items()}

    def described(kind, name, second=None):
        description = driver.ProgramGroupDesc()
        if kind in ("raygen", "miss"):
            setattr(description, f"{kind}Module", modules[name])
            setattr(description, f"{kind}EntryFunctionName", name)
        else:
            description.hitgroupModuleCH, description.hitgroupEntryFunctionNameCH = modules[name], name
        if second:
            description.hitgroupModuleIS, description.hitgroupEntryFunctionNameIS = modules[second], second
        return context.programGroupCreate([description])[0][0]

    raygen = [described("raygen", "__raygen__camera")]
    misses = [described("miss", "__miss__sky"), described("miss", "__miss__sun")]
    hits = [described("hit", "__closesthit__mesh"), described("hit", "__closesthit__sphere", "__intersection__sphere")]
    links = driver.PipelineLinkOptions()
    links.maxTraceDepth = 1
    pipeline = context.pipelineCreate(options, links, raygen + misses + hits, "")
    pipeline.setStackSize(2048, 2048, 2048, 2)
    (first, _), (second, miss_bytes), (third, hit_bytes) = make_records(raygen), make_records(misses), make_records(hits)
    table = driver.ShaderBindingTable(
        raygenRecord=address(first),
        missRecordBase=address(second),
        missRecordStrideInBytes=miss_bytes,
        missRecordCount=len(misses),
        hitgroupRecordBase=address(third),
        hitgroupRecordStrideInBytes=hit_bytes,
        hitgroupRecordCount=len(hits),
    )
    return pipeline, table, (modules, raygen, misses, hits, first, second, third)


def render_by_optix(programs, triangles, camera, width, height):
    device = kjit.device("cuda")
    context = driver.deviceContextCreate(0, driver.DeviceContextOptions())
    scene, kept = build_scene(context, triangles)
    pipeline, table, also_kept = make_pipeline(context, programs)
    image, spheres, colors = on_gpu(np.zeros((height, width), np.uint32)), on_gpu(SPHERES), on_gpu(COLORS)
    packed = on_gpu(params.pack(image=image, spheres=spheres, colors=colors, scene=scene, eye=EYE, sun=SUN, **camera).view(np.uint8))
    device.synchronize()
    driver.launch(pipeline, 0, address(packed), params.dtype.itemsize, table, width, height, 1)
    device.synchronize()
    return image.to_host().view(np.uint8).reshape(height, width, 4)[..., :3]


# ---- the same in NumPy ----


def nearest(origins, directions, triangles):
    """Returns (t, normal, object) of the first hit of each ray; t is infinite for a ray without a
    hit."""
    best, what = np.full(len(origins), np.inf), np.zeros(len(origins), int)
    normals = np.zeros_like(origins)
    for k, (a, b, c) in enumerate(triangles.astype(np.float64)):
        normal = np.cross(b - a, c - a)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (a - origins) @ normal / (directions @ normal)
            p = origins + t[:, None] * directions
            inside = np.all([np.cross(y - x, p - x) @ normal >= 0 for x, y in ((a, b), (b, c), (c, a))], 0)
        hit = inside & (t > 0) & (t < best)
        best[hit], normals[hit], what[hit] = t[hit], normal / np.linalg.norm(normal), int(k >= 2)
    for k, (x, y, z, radius) in enumerate(SPHERES.astype(np.float64)):
        q = origins - (x, y, z)
        half = np.sum(q * directions, 1)
        root = half**2 - np.sum(q * q, 1) + radius**2
        t = -half - np.sqrt(np.where(root >= 0, root, np.nan))
        hit = (t > 0) & (t < best)
        best[hit], normals[hit], what[hit] = t[hit], ((q + t[:, None] * directions) / radius)[hit], 2 + k
    normals *= np.where(np.sum(normals * directions, 1) > 0, -1, 1)[:, None]
    return best, normals, what


def render_by_numpy(triangles, camera, width, height):
    b, a = np.meshgrid(1 - 2 * (np.arange(height) + 0.5) / height, 2 * (np.arange(width) + 0.5) / width - 1, indexing="ij")
    d = camera["ahead"] + a.reshape(-1, 1) * camera["right"] + b.reshape(-1, 1) * camera["up"]
    d /= np.linalg.norm(d, axis=1)[:, None]
    o, weight, colour = np.tile(EYE.astype(float), (len(d), 1)), np.ones(len(d)), np.zeros((len(d), 3))
    for _ in range(BOUNCES):
        t, normal, what = nearest(o, d, triangles)
        sky = np.isinf(t)
        colour += np.where(sky, weight, 0)[:, None] * np.stack([0.75 - 0.45 * d[:, 1], 0.85 - 0.3 * d[:, 1], np.ones(len(d))], 1)
        weight = np.where(sky, 0, weight)
        point = o + np.where(sky, 0, t)[:, None] * d
        odd = (what == 0) & (np.floor(point[:, 0]) + np.floor(point[:, 2])).astype(int) % 2 == 1
        o = point + GAP * normal
        light = np.maximum(normal @ SUN, 0) * np.isinf(nearest(o, np.tile(SUN.astype(float), (len(o), 1)), triangles)[0])
        shade = np.where(odd, 0.55, 1) * (AMBIENT + (1 - AMBIENT) * light)
        material = COLORS[what].astype(float)
        colour += (weight * (1 - material[:, 3]) * shade)[:, None] * material[:, :3]
        weight = weight * material[:, 3]
        weight[weight < 0.01] = 0
        d = d - 2 * np.sum(d * normal, 1)[:, None] * normal
    return (np.clip(colour, 0, 1) * 255 + 0.5).astype(np.uint8).reshape(height, width, 3)


def make_camera(width, height):
    ahead = (TARGET - EYE) / np.linalg.norm(TARGET - EYE)
    right = np.cross(ahead, [0, 1, 0])
    right /= np.linalg.norm(right)
    up = np.cross(right, ahead)
    return {"ahead": ahead.astype(np.float32), "right": (right * 0.42 * width / height).astype(np.float32), "up": (up * 0.42).astype(np.float32)}


def write_png(path, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)))
        file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


functions = (__raygen__camera, __miss__sky, __miss__sun, __closesthit__mesh, __intersection__sphere, __closesthit__sphere)
programs = {function.__name__: optix.compile(function) for function in functions}
triangles = make_triangles()
has_optix = driver is not None and any(device.kind == "cuda" for device in kjit.devices())
width, height = (96, 64) if has_optix else (48, 32)
expected = render_by_numpy(triangles, make_camera(width, height), width, height)
if has_optix:
    picture = render_by_optix(programs, triangles, make_camera(width, height), width, height)
    differ = np.mean(np.abs(picture.astype(int) - expected.astype(int)).max(2) > 3)
    # a ray that passes close to an edge may hit the object on either side
    assert differ < 0.01, f"{differ:.1%} of the pixels differ"
    print(f"OptiX and NumPy agree in {1 - differ:.2%} of {width} x {height} pixels")
else:
    print(f"{len(programs)} programs are compiled; OptiX is not installed, so NumPy made {width} x {height} pixels")
if len(sys.argv) > 1:
    width, height = (1440, 960) if has_optix else (240, 160)
    camera = make_camera(width, height)
    picture = render_by_optix(programs, triangles, camera, width, height) if has_optix else render_by_numpy(triangles, camera, width, height)
    write_png(sys.argv[1], picture)

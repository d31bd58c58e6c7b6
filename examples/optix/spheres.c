/* spheres.c: a picture of spheres in the sun. NVIDIA OptiX traces the rays and calls programs in
 * the kernel IR (spheres.kir), which kjit compiles to PTX. A plain loop traces the same rays on the
 * CPU, and the two pictures are compared.
 *
 *   spheres path/of/spheres.kir [picture.ppm] [width height]
 *
 * Building needs the headers of OptiX 8 or 9 (https://github.com/NVIDIA/optix-dev) and of CUDA.
 * OptiX itself is a part of NVIDIA's driver. */
#define OPTIX_ENABLE_SDK_MIXING /* with this macro the functions of optix_stubs.h have internal \
                                   linkage */
#include <kjit/kjit.h>
#include <math.h>
#include <optix.h>
#include <optix_function_table_definition.h>
#include <optix_stubs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAYGEN, SKY, SUN, HIT, INTERSECTION, PROGRAMS };

static const char *const names[PROGRAMS] = { "__raygen__camera", "__miss__sky", "__miss__sun",
                                             "__closesthit__sphere", "__intersection__sphere" };

/* Center and radius of each sphere, then its color. The first sphere is the ground. */
static const float spheres[][4] = { { 0, -100, 0, 100 },
                                    { -1.4f, 0.7f, 0, 0.7f },
                                    { 0.3f, 0.5f, 1, 0.5f },
                                    { 1.6f, 0.9f, -0.6f, 0.9f },
                                    { -0.5f, 0.2f, 1.8f, 0.2f } };
static const float colors[][4] = { { 0.8f, 0.8f, 0.75f, 1 },
                                   { 0.9f, 0.25f, 0.2f, 1 },
                                   { 0.2f, 0.6f, 0.9f, 1 },
                                   { 0.9f, 0.65f, 0.2f, 1 },
                                   { 0.3f, 0.8f, 0.4f, 1 } };
static const float sun[3] = { 0.55f, 0.75f, 0.36742346f }; /* a vector with length 1 */

enum { SPHERES = sizeof spheres / sizeof *spheres };

/* The struct Params of spheres.kir. */
typedef struct params {
  uint64_t image, spheres, colors, scene;
  uint32_t count;
  float sun[3];
} params;

static kjit_context *context;
static kjit_device *device;
static kjit_stream *stream;

/* ---- errors ---- */

static void check(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *text = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), text ? text : "");
  exit(1);
}

static char messages[4096];
static size_t messages_bytes = sizeof messages;

static void check_optix(OptixResult result, const char *what)
{
  if (result == OPTIX_SUCCESS) return;
  fprintf(stderr, "%s: %s\n%s", what, optixGetErrorName(result), messages);
  exit(1);
}

static void check_cuda(CUresult result, const char *what)
{
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: CUDA error %d\n", what, (int)result);
  exit(1);
}

/* ---- memory of the GPU ---- */

static uint64_t get_address(const kjit_array *array)
{
  return (uint64_t)(uintptr_t)kjit_get_tensor(array)->data;
}

static kjit_array *make_bytes(size_t size_bytes, const void *content)
{
  kjit_array *array;
  int64_t count = (int64_t)size_bytes;
  kjit_array_config config = { .size_bytes = sizeof config,
                               .device = device,
                               .element = KJIT_U8,
                               .rank = 1,
                               .shape = &count,
                               .stream = stream };
  check(kjit_create_array_with(&config, &array), "kjit_create_array_with");
  if (content) check(kjit_copy_from_host(array, content, size_bytes, stream), "a copy");
  return array;
}

/* ---- the programs ---- */

static void *read_file(const char *path, size_t *size_bytes)
{
  enum { MOST_BYTES = 1 << 20 };
  FILE *file = fopen(path, "rb");
  void *text = malloc(MOST_BYTES);
  if (!file || !text) {
    perror(path);
    exit(1);
  }
  *size_bytes = fread(text, 1, MOST_BYTES, file);
  fclose(file);
  return text;
}

/* Compiles each kernel of the file to PTX and makes a module of OptiX with it. */
static void make_modules(OptixDeviceContext optix, const char *path,
                         const OptixPipelineCompileOptions *options, OptixModule *modules)
{
  size_t text_bytes;
  char *text = read_file(path, &text_bytes);
  kjit_module *module;
  check(kjit_parse_module(context, path, text, text_bytes, &module), path);
  free(text);
  for (int i = 0; i < PROGRAMS; i++) {
    kjit_kernel *kernel;
    void *ptx;
    size_t ptx_bytes;
    kjit_compile_options how = { .size_bytes = sizeof how, .target = "sm_75" };
    OptixModuleCompileOptions defaults = { 0 };
    check(kjit_get_kernel(module, names[i], &kernel), names[i]);
    check(kjit_compile(kernel, "", &how, KJIT_STAGE_PTX, &ptx, &ptx_bytes), names[i]);
    messages_bytes = sizeof messages;
    check_optix(optixModuleCreate(optix, &defaults, options, ptx, ptx_bytes, messages,
                                  &messages_bytes, &modules[i]),
                names[i]);
    kjit_free(context, ptx);
  }
  kjit_release_module(module);
}

static OptixProgramGroup make_group(OptixDeviceContext optix, const OptixProgramGroupDesc *given)
{
  OptixProgramGroup group;
  OptixProgramGroupOptions defaults = { 0 };
  messages_bytes = sizeof messages;
  check_optix(optixProgramGroupCreate(optix, given, 1, &defaults, messages, &messages_bytes,
                                      &group),
              "optixProgramGroupCreate");
  return group;
}

enum { RAYGEN_GROUP, SKY_GROUP, SUN_GROUP, HIT_GROUP, GROUPS };

static void make_groups(OptixDeviceContext optix, const OptixModule *modules,
                        OptixProgramGroup *groups)
{
  OptixProgramGroupDesc wanted[GROUPS] = {
    [RAYGEN_GROUP] = { .kind = OPTIX_PROGRAM_GROUP_KIND_RAYGEN,
                       .raygen = { modules[RAYGEN], names[RAYGEN] } },
    [SKY_GROUP] = { .kind = OPTIX_PROGRAM_GROUP_KIND_MISS, .miss = { modules[SKY], names[SKY] } },
    [SUN_GROUP] = { .kind = OPTIX_PROGRAM_GROUP_KIND_MISS, .miss = { modules[SUN], names[SUN] } },
    [HIT_GROUP] = { .kind = OPTIX_PROGRAM_GROUP_KIND_HITGROUP,
                    .hitgroup = { .moduleCH = modules[HIT],
                                  .entryFunctionNameCH = names[HIT],
                                  .moduleIS = modules[INTERSECTION],
                                  .entryFunctionNameIS = names[INTERSECTION] } }
  };
  for (int i = 0; i < GROUPS; i++) groups[i] = make_group(optix, &wanted[i]);
}

static OptixPipeline make_pipeline(OptixDeviceContext optix,
                                   const OptixPipelineCompileOptions *options,
                                   const OptixProgramGroup *groups)
{
  OptixPipeline pipeline;
  OptixPipelineLinkOptions links = { .maxTraceDepth = 1 };
  messages_bytes = sizeof messages;
  check_optix(optixPipelineCreate(optix, options, &links, groups, GROUPS, messages, &messages_bytes,
                                  &pipeline),
              "optixPipelineCreate");
  check_optix(optixPipelineSetStackSize(pipeline, 2048, 2048, 2048, 1),
              "optixPipelineSetStackSize");
  return pipeline;
}

/* ---- the scene ---- */

/* Builds an acceleration structure of the boxes around the spheres. The caller releases *memory. */
static OptixTraversableHandle build_scene(OptixDeviceContext optix, kjit_array **memory)
{
  OptixAabb boxes[SPHERES];
  for (int i = 0; i < SPHERES; i++) {
    const float *s = spheres[i];
    boxes[i] =
      (OptixAabb){ s[0] - s[3], s[1] - s[3], s[2] - s[3], s[0] + s[3], s[1] + s[3], s[2] + s[3] };
  }
  kjit_array *there = make_bytes(sizeof boxes, boxes);
  CUdeviceptr address = get_address(there);
  unsigned flags = OPTIX_GEOMETRY_FLAG_DISABLE_ANYHIT;
  OptixBuildInput input = { .type = OPTIX_BUILD_INPUT_TYPE_CUSTOM_PRIMITIVES,
                            .customPrimitiveArray = { .aabbBuffers = &address,
                                                      .numPrimitives = SPHERES,
                                                      .flags = &flags,
                                                      .numSbtRecords = 1 } };
  OptixAccelBuildOptions options = { .operation = OPTIX_BUILD_OPERATION_BUILD };
  OptixAccelBufferSizes sizes;
  OptixTraversableHandle handle;
  check_optix(optixAccelComputeMemoryUsage(optix, &options, &input, 1, &sizes),
              "optixAccelComputeMemoryUsage");
  kjit_array *work = make_bytes(sizes.tempSizeInBytes, NULL);
  *memory = make_bytes(sizes.outputSizeInBytes, NULL);
  check_optix(optixAccelBuild(optix, kjit_get_native_stream(stream), &options, &input, 1,
                              get_address(work), sizes.tempSizeInBytes, get_address(*memory),
                              sizes.outputSizeInBytes, &handle, NULL, 0),
              "optixAccelBuild");
  check(kjit_synchronize_stream(stream), "building the scene");
  kjit_release_array(there);
  kjit_release_array(work);
  return handle;
}

/* ---- a picture ---- */

/* A record of the shader binding table: its program, and no data. */
typedef struct record {
  _Alignas(OPTIX_SBT_RECORD_ALIGNMENT) char header[OPTIX_SBT_RECORD_HEADER_SIZE];
} record;

static void launch(OptixPipeline pipeline, const OptixProgramGroup *groups, params *given,
                   uint32_t width, uint32_t height, uint32_t *pixels)
{
  record records[GROUPS];
  for (int i = 0; i < GROUPS; i++)
    check_optix(optixSbtRecordPackHeader(groups[i], &records[i]), "optixSbtRecordPackHeader");
  size_t pixels_bytes = (size_t)width * height * sizeof *pixels;
  kjit_array *listed = make_bytes(sizeof records, records), *image = make_bytes(pixels_bytes, NULL),
             *shapes = make_bytes(sizeof spheres, spheres),
             *paints = make_bytes(sizeof colors, colors);
  given->image = get_address(image);
  given->spheres = get_address(shapes);
  given->colors = get_address(paints);
  kjit_array *parameters = make_bytes(sizeof *given, given);
  CUdeviceptr first = get_address(listed);
  OptixShaderBindingTable table = { .raygenRecord = first + RAYGEN_GROUP * sizeof(record),
                                    .missRecordBase = first + SKY_GROUP * sizeof(record),
                                    .missRecordStrideInBytes = sizeof(record),
                                    .missRecordCount = 2,
                                    .hitgroupRecordBase = first + HIT_GROUP * sizeof(record),
                                    .hitgroupRecordStrideInBytes = sizeof(record),
                                    .hitgroupRecordCount = 1 };
  check_optix(optixLaunch(pipeline, kjit_get_native_stream(stream), get_address(parameters),
                          sizeof *given, &table, width, height, 1),
              "optixLaunch");
  check(kjit_copy_to_host(image, pixels, pixels_bytes, stream), "reading the picture");
  kjit_array *all[] = { listed, image, shapes, paints, parameters };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) kjit_release_array(all[i]);
}

static void render(const char *path, uint32_t width, uint32_t height, uint32_t *pixels)
{
  OptixDeviceContext optix;
  OptixDeviceContextOptions defaults = { 0 };
  OptixPipelineCompileOptions options = { .traversableGraphFlags =
                                            OPTIX_TRAVERSABLE_GRAPH_FLAG_ALLOW_SINGLE_GAS,
                                          .numPayloadValues = 2,
                                          .numAttributeValues = 1,
                                          .pipelineLaunchParamsVariableName = "params",
                                          .usesPrimitiveTypeFlags =
                                            OPTIX_PRIMITIVE_TYPE_FLAGS_CUSTOM };
  OptixModule modules[PROGRAMS];
  OptixProgramGroup groups[GROUPS];
  kjit_array *scene;
  check_optix(optixInit(), "optixInit");
  check_optix(optixDeviceContextCreate(NULL, &defaults, &optix), "optixDeviceContextCreate");
  params given = { .scene = build_scene(optix, &scene), .count = SPHERES };
  memcpy(given.sun, sun, sizeof sun);
  make_modules(optix, path, &options, modules);
  make_groups(optix, modules, groups);
  OptixPipeline pipeline = make_pipeline(optix, &options, groups);
  launch(pipeline, groups, &given, width, height, pixels);
  optixPipelineDestroy(pipeline);
  for (int i = 0; i < GROUPS; i++) optixProgramGroupDestroy(groups[i]);
  for (int i = 0; i < PROGRAMS; i++) optixModuleDestroy(modules[i]);
  optixDeviceContextDestroy(optix);
  kjit_release_array(scene);
}

/* ---- the same on the CPU ---- */

static double dot(const double *a, const double *b)
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Returns the index of the first sphere on a ray, or -1. */
static int find_hit(const double *from, const double *direction, double *t)
{
  int which = -1;
  *t = INFINITY;
  for (int i = 0; i < SPHERES; i++) {
    double q[3] = { from[0] - spheres[i][0], from[1] - spheres[i][1], from[2] - spheres[i][2] };
    double half = dot(q, direction),
           root = half * half - dot(q, q) + (double)spheres[i][3] * spheres[i][3],
           at = root >= 0 ? -half - sqrt(root) : -1;
    if (at <= 0 || at >= *t) continue;
    *t = at;
    which = i;
  }
  return which;
}

static uint32_t get_byte(double x) { return (uint32_t)(fmin(fmax(x, 0), 1) * 255 + 0.5); }

static uint32_t trace(double x, double y, double width, double height)
{
  double from[3] = { 0, 1.5, 6 }, light[3] = { sun[0], sun[1], sun[2] }, t, ignored,
         d[3] = { ((x + 0.5) * 2 - width) / height * 0.5, 0.3 - (y + 0.5) / height, -1 },
         length = sqrt(dot(d, d));
  for (int i = 0; i < 3; i++) d[i] /= length;
  double color[3] = { 0.75 - 0.45 * d[1], 0.85 - 0.3 * d[1], 1 };
  int which = find_hit(from, d, &t);
  if (which >= 0) {
    double point[3], normal[3], outside[3];
    for (int i = 0; i < 3; i++) {
      point[i] = from[i] + t * d[i];
      normal[i] = (point[i] - spheres[which][i]) / spheres[which][3];
      outside[i] = point[i] + 1e-3 * normal[i];
    }
    double shade = fmax(dot(normal, light), 0);
    if (find_hit(outside, light, &ignored) >= 0) shade = 0;
    shade = 0.25 + 0.75 * shade;
    if (which == 0 && ((int)floor(point[0]) + (int)floor(point[2])) % 2) shade *= 0.55;
    for (int i = 0; i < 3; i++) color[i] = colors[which][i] * shade;
  }
  return get_byte(color[0]) | get_byte(color[1]) << 8 | get_byte(color[2]) << 16 | 0xff000000u;
}

static int differ(uint32_t a, uint32_t b)
{
  int most = 0;
  for (int shift = 0; shift < 32; shift += 8) {
    int distance = abs((int)(a >> shift & 255) - (int)(b >> shift & 255));
    if (distance > most) most = distance;
  }
  return most > 3;
}

static void write_picture(const char *path, const uint32_t *pixels, uint32_t width, uint32_t height)
{
  FILE *file = fopen(path, "wb");
  if (!file) {
    perror(path);
    exit(1);
  }
  fprintf(file, "P6\n%u %u\n255\n", width, height);
  for (size_t i = 0; i < (size_t)width * height; i++) fwrite(&pixels[i], 3, 1, file);
  if (fclose(file)) perror(path);
}

int main(int count, char **arguments)
{
  uint32_t width = count > 4 ? (uint32_t)atoi(arguments[3]) : 480,
           height = count > 4 ? (uint32_t)atoi(arguments[4]) : 320;
  CUcontext primary;
  if (count < 2 || !width || !height) {
    fprintf(stderr, "spheres path/of/spheres.kir [picture.ppm] [width height]\n");
    return 2;
  }
  uint32_t *pixels = calloc((size_t)width * height, sizeof *pixels);
  if (!pixels) return 1;
  check(kjit_create_context(NULL, &context), "kjit_create_context");
  check(kjit_get_device(context, KJIT_DEVICE_CUDA, 0, &device), "kjit_get_device");
  check(kjit_create_stream(device, &stream), "kjit_create_stream");
  check_cuda(
    cuInit(0),
    "cuInit"); /* OptiX uses the current context, and kjit uses the primary context of the GPU */
  check_cuda(cuDevicePrimaryCtxRetain(&primary, 0), "cuDevicePrimaryCtxRetain");
  check_cuda(cuCtxSetCurrent(primary), "cuCtxSetCurrent");
  render(arguments[1], width, height, pixels);
  size_t wrong = 0;
  for (uint32_t i = 0; i < width * height; i++)
    wrong += (size_t)differ(pixels[i], trace(i % width, i / width, width, height));
  if (count > 2) write_picture(arguments[2], pixels, width, height);
  /* a ray close to an edge may hit the object in one picture and miss it in the other */
  int is_right = wrong * 100 < (size_t)width * height;
  printf("%u x %u pixels: %zu differ from those of the CPU\n", width, height, wrong);
  free(pixels);
  kjit_destroy_stream(stream);
  cuDevicePrimaryCtxRelease(0);
  kjit_destroy_context(context);
  return is_right ? 0 : 1;
}

/* Structs of a C program: arrays of structs, values, pointers; types that calls create, kernels
 * from text and from the builder; prepared launches.
 * RUN: %programs/structs cpu
 * RUN: %if cuda %{ %programs/structs cuda %}
 */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct vec3 {
  float x, y, z;
} vec3;

typedef struct body {
  vec3 position;
  double mass;
  uint8_t tag;
  int32_t history[2][3];
  vec3 *parent;
} body;

typedef struct __attribute__((packed)) tight {
  uint8_t a;
  double b;
  _Bool c;
} tight;

/* 24 numbers, so a value does not fit into two words */
typedef struct settings {
  vec3 wind;
  double dt;
  int32_t table[20];
} settings;

static kjit_context *context;
static kjit_device *device;

static void require(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), message ? message : "");
  exit(EXIT_FAILURE);
}

#define EXPECT(condition) \
  do { \
    if (condition) break; \
    fprintf(stderr, "line %d: not %s\n", __LINE__, #condition); \
    exit(EXIT_FAILURE); \
  } while (0)

static void expect_failure(kjit_status got, kjit_status wanted, const char *part)
{
  char *message = kjit_copy_diagnostics_text(context);
  if (got == wanted && message && strstr(message, part)) {
    kjit_free(context, message);
    return;
  }
  fprintf(stderr, "got %s, expected %s with \"%s\":\n%s", kjit_get_status_name(got),
          kjit_get_status_name(wanted), part, message ? message : "");
  exit(EXIT_FAILURE);
}

/* ---- types ---- */

static kjit_type vec3_type, body_type, tight_type, settings_type;

static void expect_field(kjit_type type, uint32_t index, const char *name, kjit_type wanted,
                         uint32_t rank, size_t offset)
{
  kjit_field field;
  uint32_t at;
  require(kjit_get_type_field(context, type, index, &field, &at), "a field");
  EXPECT(!strcmp(field.name, name) && field.type == wanted && field.rank == rank && at == offset);
}

static void make_types(void)
{
  const kjit_field of_vec3[] = { { .name = "x", .type = KJIT_F32 },
                                 { .name = "y", .type = KJIT_F32 },
                                 { .name = "z", .type = KJIT_F32 } };
  vec3_type = kjit_get_struct_type(context, "Vec3", of_vec3, 3, 0);
  const kjit_field of_body[] = {
    { .name = "position", .type = vec3_type },
    { .name = "mass", .type = KJIT_F64 },
    { .name = "tag", .type = KJIT_U8 },
    { .name = "history", .type = KJIT_I32, .rank = 2, .shape = { 2, 3 } },
    { .name = "parent", .type = kjit_get_pointer_type(context, vec3_type, 0) }
  };
  body_type = kjit_get_struct_type(context, "Body", of_body, 5, 0);
  const kjit_field of_tight[] = { { .name = "a", .type = KJIT_U8 },
                                  { .name = "b", .type = KJIT_F64 },
                                  { .name = "c", .type = KJIT_BOOL } };
  tight_type = kjit_get_struct_type(context, "Tight", of_tight, 3, KJIT_STRUCT_PACKED);
  const kjit_field of_settings[] = {
    { .name = "wind", .type = vec3_type },
    { .name = "dt", .type = KJIT_F64 },
    { .name = "table", .type = KJIT_I32, .rank = 1, .shape = { 20 } }
  };
  settings_type = kjit_get_struct_type(context, "Settings", of_settings, 3, 0);
  EXPECT(vec3_type != KJIT_VOID && body_type != KJIT_VOID && tight_type != KJIT_VOID &&
         settings_type != KJIT_VOID);
  EXPECT(kjit_get_struct_type(context, "Vec3", of_vec3, 3, 0) == vec3_type);
  EXPECT(kjit_get_struct_type(context, "Vec3", of_vec3, 2, 0) != vec3_type);
}

static void check_types(void)
{
  kjit_type_layout layout = { .size_bytes = sizeof layout };
  kjit_type parsed;
  require(kjit_get_type_layout(context, body_type, &layout), "a layout");
  EXPECT(layout.type_bytes == sizeof(body) && layout.alignment_bytes == _Alignof(body) &&
         layout.field_count == 5);
  require(kjit_get_type_layout(context, tight_type, &layout), "a packed layout");
  EXPECT(layout.type_bytes == sizeof(tight) && layout.alignment_bytes == 1);
  expect_field(body_type, 0, "position", vec3_type, 0, offsetof(body, position));
  expect_field(body_type, 1, "mass", KJIT_F64, 0, offsetof(body, mass));
  expect_field(body_type, 3, "history", KJIT_I32, 2, offsetof(body, history));
  expect_field(body_type, 4, "parent", kjit_get_pointer_type(context, vec3_type, 0), 0,
               offsetof(body, parent));
  expect_field(tight_type, 1, "b", KJIT_F64, 0, offsetof(tight, b));
  require(kjit_parse_type(context, "const Body[:]", &parsed), "an array of structs by its name");
  EXPECT(parsed == kjit_get_array_type(context, body_type, 1, KJIT_LAYOUT_STRIDED, 1));
  expect_failure(kjit_parse_type(context, "Vec3", &parsed), KJIT_ERROR_NAME,
                 "several structs `Vec3`");
  expect_failure(kjit_get_type_field(context, body_type, 5, NULL, NULL), KJIT_ERROR_ARGUMENT,
                 "has 5 fields");
  expect_failure(kjit_get_type_field(context, KJIT_F32, 0, NULL, NULL), KJIT_ERROR_ARGUMENT,
                 "only structs");
  expect_failure(kjit_get_type_layout(context, KJIT_VOID, &layout), KJIT_ERROR_ARGUMENT, "layout");
}

static void refuse_types(void)
{
  const struct {
    const char *name;
    kjit_field field;
    size_t count;
    unsigned flags;
    kjit_status status;
    const char *part;
  } rows[] = {
    { "1S",
      { .name = "x", .type = KJIT_F32 },
      1,
      0,
      KJIT_ERROR_NAME,
      "is not a valid struct name" },
    { "f32x4",
      { .name = "x", .type = KJIT_F32 },
      1,
      0,
      KJIT_ERROR_NAME,
      "is not a valid struct name" },
    { NULL,
      { .name = "x", .type = KJIT_F32 },
      1,
      0,
      KJIT_ERROR_NAME,
      "is not a valid struct name" },
    { "S",
      { .name = "let", .type = KJIT_F32 },
      1,
      0,
      KJIT_ERROR_NAME,
      "is not a valid identifier" },
    { "S", { .name = "x", .type = KJIT_VOID }, 1, 0, KJIT_ERROR_MISUSE, "` must be a scalar" },
    { "S", { .name = "x", .type = 1u << 30 }, 1, 0, KJIT_ERROR_MISUSE, "` must be a scalar" },
    { "S",
      { .name = "x", .type = KJIT_F32, .rank = 9 },
      1,
      0,
      KJIT_ERROR_MISUSE,
      "at most 8 dimensions" },
    { "S",
      { .name = "x", .type = KJIT_F32, .rank = 1, .shape = { 0 } },
      1,
      0,
      KJIT_ERROR_MISUSE,
      "at least 1" },
    { "S",
      { .name = "x", .type = KJIT_F32, .rank = 2, .shape = { 1 << 30, 1 << 30 } },
      1,
      0,
      KJIT_ERROR_UNSUPPORTED,
      "65536 bytes" },
    { "S", { .name = "x", .type = KJIT_F32 }, 0, 0, KJIT_ERROR_MISUSE, "1 to 1024 fields" },
    { "S", { .name = "x", .type = KJIT_F32 }, 1, 8, KJIT_ERROR_MISUSE, "flags" },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    EXPECT(kjit_get_struct_type(context, rows[i].name, &rows[i].field, rows[i].count,
                                rows[i].flags) == KJIT_VOID);
    expect_failure(kjit_get_diagnostic(context, 0)->status, rows[i].status, rows[i].part);
  }
  const kjit_field twice[] = { { .name = "x", .type = KJIT_F32 },
                               { .name = "x", .type = KJIT_F32 } };
  EXPECT(kjit_get_struct_type(context, "S", twice, 2, 0) == KJIT_VOID);
  EXPECT(kjit_get_pointer_type(context, KJIT_VOID, 0) == KJIT_VOID);
}

/* ---- kernels ---- */

static const char text[] =
  "struct Vec3 { x: f32; y: f32; z: f32 }\n"
  "struct Settings { wind: Vec3; dt: f64; table: i32[20] }\n"
  "kernel move(bodies, s: Settings, out: f64[:]) {\n"
  "  for i in grid_range(len(bodies)) {\n"
  "    bodies[i].position.x += s.wind.x\n"
  "    bodies[i].mass += s.dt * s.table[i % 20]\n"
  "    bodies[i].history[1, i % 3] = bodies[i].tag\n"
  "    out[i] = bodies[i].mass\n"
  "  }\n"
  "}\n"
  "kernel flip(t) { for i in grid_range(len(t)) { t[i].c = not t[i].c; t[i].b += t[i].a } }\n"
  "kernel add(r: f32*, x: const f32*, n: i32) { let i = grid(1); if i < n { r[i] += x[i] } }\n"
  "kernel follow(r: Vec3*, v, n) { let i = grid(1); if i < n { r[i] = Vec3(v.x, r[i].x, i) } }\n";

static kjit_kernel *get_kernel(kjit_module *module, const char *name)
{
  kjit_kernel *kernel;
  require(kjit_get_kernel(module, name, &kernel), name);
  return kernel;
}

static kjit_tensor describe(void *data, int64_t *shape)
{
  return (kjit_tensor){
    .data = data, .device_type = KJIT_DEVICE_CPU, .rank = 1, .shape = shape, .lanes = 1
  };
}

enum { COUNT = 100 };

static void check_bodies(const body *got, const settings *s, const double *out, int times)
{
  for (int i = 0; i < COUNT; i++) {
    EXPECT(got[i].position.x == (float)i + (float)times * s->wind.x && got[i].position.y == 7);
    EXPECT(got[i].mass == 1 + times * s->dt * s->table[i % 20] && got[i].tag == i &&
           out[i] == got[i].mass);
    EXPECT(got[i].history[1][i % 3] == i && got[i].history[0][0] == -1 && got[i].parent == NULL);
  }
}

static body bodies[COUNT];
static double out[COUNT];

static void fill_bodies(void)
{
  for (int i = 0; i < COUNT; i++)
    bodies[i] = (body){ .position = { (float)i, 7, 8 },
                        .mass = 1,
                        .tag = (uint8_t)i,
                        .history = { { -1, -1, -1 }, { -1, -1, -1 } } };
}

/* Host arrays, and a struct by value: both are only read during the call. */
static void launch_host_arrays(kjit_module *module)
{
  int64_t shape = COUNT;
  kjit_tensor t = describe(bodies, &shape), o = describe(out, &shape);
  settings s = { { 2, 0, 0 }, 0.5, { 0 } };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  o.code = 2, o.bits = 64;
  for (int i = 0; i < 20; i++) s.table[i] = i;
  fill_bodies();
  kjit_arg arguments[] = { kjit_arg_elements(body_type, &t), kjit_arg_value(settings_type, &s),
                           kjit_arg_tensor(&o) };
  require(kjit_launch(get_kernel(module, "move"), &config, arguments, 3), "move");
  check_bodies(bodies, &s, out, 1);
  require(kjit_launch(get_kernel(module, "move"), &config, arguments, 3), "move again");
  check_bodies(bodies, &s, out, 2);
  expect_failure(kjit_launch(get_kernel(module, "move"), &config,
                             (kjit_arg[]){ arguments[0], kjit_arg_i32(1), arguments[2] }, 3),
                 KJIT_ERROR_TYPE, "declared as Settings");
  arguments[0] = kjit_arg_tensor(&t);
  expect_failure(kjit_launch(get_kernel(module, "move"), &config, arguments, 3),
                 KJIT_ERROR_ARGUMENT, "is not an element type of kjit");
  arguments[0] = kjit_arg_elements(tight_type, &t);
  expect_failure(kjit_launch(get_kernel(module, "move"), &config, arguments, 3), KJIT_ERROR_NAME,
                 "struct `Tight` has no field `position`");
}

/* kjit arrays of structs: copies in and out, strided ones too; a prepared launch keeps the value.
 */
static void launch_prepared(kjit_module *module)
{
  int64_t shape = COUNT;
  kjit_array *array, *results;
  kjit_tensor host = describe(bodies, &shape), o = describe(out, &shape);
  kjit_prepared *prepared;
  o.code = 2, o.bits = 64;
  fill_bodies();
  require(kjit_create_array(device, body_type, &shape, 1, &array), "an array of structs");
  require(kjit_create_array(device, KJIT_F64, &shape, 1, &results), "an array");
  EXPECT(kjit_get_array_element(array) == body_type);
  kjit_arg on_device = kjit_arg_array(array), on_host = kjit_arg_elements(body_type, &host);
  require(kjit_copy(context, &on_device, &on_host, NULL), "a copy in");
  settings s = { { 3, 0, 0 }, 2, { 0 } };
  for (int i = 0; i < 20; i++) s.table[i] = 1;
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_arg arguments[] = { on_device, kjit_arg_value(settings_type, &s), kjit_arg_array(results) };
  require(kjit_prepare_launch(get_kernel(module, "move"), &config, arguments, 3, &prepared),
          "preparing");
  settings kept = s;
  memset(&s, 0, sizeof s);
  require(kjit_run_prepared(prepared, NULL), "a prepared launch");
  require(kjit_run_prepared(prepared, NULL), "a second one");
  kjit_arg back = kjit_arg_tensor(&o);
  require(kjit_copy(context, &on_host, &on_device, NULL), "a copy out");
  require(kjit_copy(context, &back, &arguments[2], NULL), "a copy of numbers");
  check_bodies(bodies, &kept, out, 2);
  kept.wind.x = 10;
  kjit_arg other = kjit_arg_value(settings_type, &kept);
  require(kjit_set_prepared_argument(prepared, 1, &other), "another value");
  require(kjit_run_prepared(prepared, NULL), "a launch with another value");
  require(kjit_copy(context, &on_host, &on_device, NULL), "a copy out");
  for (int i = 0; i < COUNT; i++) EXPECT(bodies[i].position.x == (float)i + 16);
  expect_failure(kjit_copy(context, &back, &on_device, NULL), KJIT_ERROR_ARGUMENT,
                 "the source has elements of type Body");
  static body copies[COUNT];
  require(kjit_copy_to_host(array, copies, sizeof copies, NULL), "a copy to plain memory");
  for (int i = 0; i < COUNT; i++)
    EXPECT(copies[i].position.x == (float)i + 16 && copies[i].tag == i &&
           copies[i].history[0][0] == -1);
  fill_bodies();
  require(kjit_copy_from_host(array, bodies, sizeof bodies, NULL), "a copy from plain memory");
  require(kjit_copy(context, &on_host, &on_device, NULL), "a copy out");
  for (int i = 0; i < COUNT; i++) EXPECT(bodies[i].position.x == (float)i && bodies[i].mass == 1);
  kjit_array_handle handle;
  expect_failure(kjit_export_array(array, &handle), KJIT_ERROR_UNSUPPORTED,
                 "only arrays of scalars can be exported");
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
  kjit_release_array(results);
}

static void launch_packed(kjit_module *module)
{
  int64_t shape = 33;
  static tight values[33];
  kjit_tensor t = describe(values, &shape);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  kjit_arg argument = kjit_arg_elements(tight_type, &t);
  for (int i = 0; i < 33; i++) values[i] = (tight){ (uint8_t)i, 0.5, i % 3 == 0 };
  require(kjit_launch(get_kernel(module, "flip"), &config, &argument, 1), "flip");
  for (int i = 0; i < 33; i++)
    EXPECT(values[i].a == i && values[i].b == i + 0.5 && values[i].c == (i % 3 != 0));
}

static uint64_t address_of(const kjit_array *array)
{
  return (uint64_t)(uintptr_t)kjit_get_tensor(array)->data;
}

/* Pointer arguments with addresses of C objects. */
static void launch_pointers(kjit_module *module)
{
  int64_t shape = 12;
  float x[12], r[12];
  kjit_array *on_r, *on_x;
  kjit_tensor hr = describe(r, &shape), hx = describe(x, &shape);
  hr.code = hx.code = 2, hr.bits = hx.bits = 32;
  for (int i = 0; i < 12; i++) x[i] = (float)i, r[i] = 100;
  require(kjit_create_array_from(device, &hr, NULL, &on_r), "an array");
  require(kjit_create_array_from(device, &hx, NULL, &on_x), "an array");
  kjit_launch_config config = {
    .size_bytes = sizeof config, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 }, .device = device
  };
  kjit_type to_floats = kjit_get_pointer_type(context, KJIT_F32, 1);
  kjit_arg arguments[] = { kjit_arg_u64(address_of(on_r)),
                           kjit_arg_pointer(to_floats, (const void *)(uintptr_t)address_of(on_x)),
                           kjit_arg_i32(12) };
  require(kjit_launch(get_kernel(module, "add"), &config, arguments, 3), "add");
  kjit_arg from = kjit_arg_array(on_r), to = kjit_arg_tensor(&hr);
  require(kjit_copy(context, &to, &from, NULL), "a copy out");
  for (int i = 0; i < 12; i++) EXPECT(r[i] == 100 + (float)i);
  kjit_arg wrong[] = { arguments[1], arguments[1], arguments[2] };
  expect_failure(kjit_launch(get_kernel(module, "add"), &config, wrong, 3), KJIT_ERROR_ARGUMENT,
                 "expected f32*, or an address as a u64, got const f32*");
  wrong[0] = kjit_arg_array(on_r);
  expect_failure(kjit_launch(get_kernel(module, "add"), &config, wrong, 3), KJIT_ERROR_ARGUMENT,
                 "expected f32*, or an address as a u64, got f32[:] C");
  vec3 v = { 5, 6, 7 };
  kjit_arg more[] = { kjit_arg_u64(address_of(on_r)), kjit_arg_value(vec3_type, &v),
                      kjit_arg_i32(4) };
  require(kjit_launch(get_kernel(module, "follow"), &config, more, 3), "follow");
  require(kjit_copy(context, &to, &from, NULL), "a copy out");
  for (int i = 0; i < 4; i++)
    EXPECT(r[3 * i] == 5 && r[3 * i + 1] == 100 + 3 * (float)i && r[3 * i + 2] == (float)i);
  kjit_release_array(on_r);
  kjit_release_array(on_x);
}

/* ---- the builder ---- */

/* kernel built(b: Body[:]) { for i in grid_range(len(b)) { var v = Vec3(1, b[i].mass, 3); v.x =
 * v.y; v = Vec3(v.x, v.y, v.z); b[i].position = v; ... } } */
static kjit_module *build(void)
{
  kjit_builder *b;
  kjit_module *module;
  require(kjit_create_builder(context, "built", &b), "a builder");
  kjit_build_begin_kernel(b, "built");
  kjit_node array = kjit_build_parameter(b, "b",
                                         kjit_get_array_type(context, body_type, 1,
                                                             KJIT_LAYOUT_STRIDED, 0)),
            i;
  kjit_build_local(b, "spare", vec3_type, (kjit_node[]){ kjit_build_integer(b, 2) }, 1);
  kjit_node n = kjit_build_call(b, "len", &array, 1);
  kjit_build_for_grid(b, &n, 1, &i);
  kjit_node mass = kjit_build_select_field(b, kjit_build_index(b, array, &i, 1), "mass");
  kjit_node parts[] = { kjit_build_integer(b, 1), kjit_build_cast(b, KJIT_F32, mass),
                        kjit_build_integer(b, 3) };
  kjit_node v = kjit_build_var(b, "Vec3", KJIT_ANY, kjit_build_construct(b, vec3_type, parts, 3));
  kjit_build_assign(b, kjit_build_select_field(b, v, "x"), KJIT_OP_STORE,
                    kjit_build_select_field(b, v, "y"));
  kjit_node same[] = { kjit_build_select_field(b, v, "x"), kjit_build_select_field(b, v, "y"),
                       kjit_build_select_field(b, v, "z") };
  /* the variable has the name of the struct */
  kjit_build_assign(b, v, KJIT_OP_STORE, kjit_build_construct(b, vec3_type, same, 3));
  kjit_build_assign(b, kjit_build_select_field(b, kjit_build_index(b, array, &i, 1), "position"),
                    KJIT_OP_STORE, v);
  kjit_build_assign(b,
                    kjit_build_select_field(
                      b, kjit_build_select_field(b, kjit_build_index(b, array, &i, 1), "position"),
                      "z"),
                    KJIT_OP_MUL, kjit_build_integer(b, 2));
  kjit_build_end(b);
  kjit_build_end(b);
  require(kjit_finish_builder(b, &module), "building");
  kjit_destroy_builder(b);
  return module;
}

static void launch_built(void)
{
  kjit_module *module = build(), *parsed;
  char *printed, *again;
  int64_t shape = COUNT;
  kjit_tensor t = describe(bodies, &shape);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  require(kjit_copy_module_text(module, &printed), "its text");
  EXPECT(strstr(printed, "struct Body {") && strstr(printed, "history: i32[2, 3]") &&
         strstr(printed, "var Vec3_2 = Vec3(1, f32("));
  require(kjit_parse_module(context, "printed", printed, strlen(printed), &parsed),
          "parsing what was printed");
  require(kjit_copy_module_text(parsed, &again), "its text");
  EXPECT(!strcmp(printed, again));
  kjit_module *modules[] = { module, parsed };
  for (int k = 0; k < 2; k++) {
    kjit_arg argument = kjit_arg_elements(body_type, &t);
    fill_bodies();
    require(kjit_launch(get_kernel(modules[k], "built"), &config, &argument, 1), "a built kernel");
    for (int i = 0; i < COUNT; i++)
      EXPECT(bodies[i].position.x == 1 && bodies[i].position.y == 1 && bodies[i].position.z == 6 &&
             bodies[i].mass == 1);
  }
  kjit_free(context, printed);
  kjit_free(context, again);
  kjit_release_module(module);
  kjit_release_module(parsed);
}

/* A struct needs more space in the parameter block than was known when the kernel object was
 * created. */
static void pass_large(void)
{
  enum { PARTS = 440 };
  static const char large_text[] =
    "struct Large { a: f64[440]; n: i32 }\n"
    "kernel k(r, x: Large, n) { var s: f64 = 0\n for i in range(440) { s += x.a[i] }\n"
    " r[0] = s + f64(x.n) + f64(n) }\n";
  struct large {
    double a[PARTS];
    int32_t n;
  } value = { .n = 7 };
  kjit_module *module;
  kjit_array *array;
  kjit_prepared *prepared;
  kjit_parameter_info info = { .size_bytes = sizeof info };
  int64_t shape = 1;
  double result = 0;
  for (int i = 0; i < PARTS; i++) value.a[i] = i;
  require(kjit_parse_module(context, "large", large_text, sizeof large_text - 1, &module),
          "parsing");
  kjit_kernel *kernel = get_kernel(module, "k");
  require(kjit_get_parameter_info(kernel, 1, &info), "a parameter");
  require(kjit_create_array(device, KJIT_F64, &shape, 1, &array), "an array");
  kjit_arg arguments[] = { kjit_arg_array(array), kjit_arg_value(info.annotation, &value),
                           kjit_arg_i32(1) };
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = device, .grid = { 1 }, .block = { 1 }
  };
  for (int i = 0; i < 3; i++) require(kjit_launch(kernel, &config, arguments, 3), "a large struct");
  require(kjit_copy_to_host(array, &result, sizeof result, NULL), "copying");
  EXPECT(result == PARTS * (PARTS - 1) / 2 + 8);
  require(kjit_prepare_launch(kernel, &config, arguments, 3, &prepared), "preparing");
  arguments[2] = kjit_arg_i32(5);
  require(kjit_set_prepared_argument(prepared, 2, &arguments[2]), "another argument");
  require(kjit_run_prepared(prepared, NULL), "running");
  require(kjit_copy_to_host(array, &result, sizeof result, NULL), "copying");
  EXPECT(result == PARTS * (PARTS - 1) / 2 + 12);
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
  kjit_release_module(module);
}

/* Tests constants that are structs or have no elements. The builder creates them, or the
 * application sets them. */
static void use_constants(void)
{
  static const char constants_text[] =
    "struct Vec3 { x: f32; y: f32; z: f32 }\n"
    "struct Row { id: u8; at: Vec3; counts: i32[2, 2]; lanes: f32x2 }\n"
    "extern const TABLE: Row[2]\n"
    "extern const ONE: Row\n"
    "extern const NONE: i32[0, 3]\n"
    "kernel k(r) {\n"
    "  for i in grid_range(2) {\n"
    "    r[i] = f64(TABLE[i].at.y) + f64(TABLE[i].counts[1, 0]) * 10.0 + f64(ONE.lanes.y) * 100.0\n"
    "    for k in range(NONE.shape[0]) { r[i] += f64(NONE[k, 1]) }\n"
    "    r[i] += f64(NONE.shape[1] + ONE.id) * 1000.0\n"
    "  }\n"
    "}\n";
  struct row {
    uint8_t id;
    vec3 at;
    int32_t counts[2][2];
    _Alignas(8) float lanes[2];
  } rows[2] = { { 1, { 1, 2, 3 }, { { 1, 2 }, { 3, 4 } }, { 5, 6 } },
                { 2, { -1, -2.5f, 3 }, { { 7, 8 }, { 9, 10 } }, { 11, 12 } } };
  kjit_module *open, *table, *one, *none, *built, *again;
  kjit_type row;
  int64_t two = 2, empty[] = { 0, 3 };
  double results[2] = { 0 };
  require(kjit_parse_module(context, "constants", constants_text, sizeof constants_text - 1, &open),
          "parsing");
  require(kjit_parse_type(context, "Row", &row), "its type");
  kjit_tensor
    t = { .data = rows, .device_type = 1, .rank = 1, .shape = &two },
    e = { .device_type = 1, .rank = 2, .code = 0, .bits = 32, .lanes = 1, .shape = empty },
    to = {
      .data = results, .device_type = 1, .rank = 1, .code = 2, .bits = 64, .lanes = 1, .shape = &two
    };
  kjit_arg of_table = kjit_arg_elements(row, &t), of_one = kjit_arg_value(row, &rows[1]),
           of_none = kjit_arg_tensor(&e), out = kjit_arg_tensor(&to);
  require(kjit_set_constant(open, "TABLE", &of_table, &table), "an array of structs");
  require(kjit_set_constant(table, "ONE", &of_one, &one), "a struct");
  require(kjit_set_constant(one, "NONE", &of_none, &none), "an array without elements");
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  char *printed, *twice;
  require(kjit_copy_module_text(none, &printed), "its text");
  require(kjit_parse_module(context, "again", printed, strlen(printed), &again), "its text again");
  require(kjit_copy_module_text(again, &twice), "its text again");
  EXPECT(!strcmp(printed, twice));
  kjit_module *modules[] = { none, again };
  for (int i = 0; i < 2; i++) {
    results[0] = results[1] = 0;
    require(kjit_launch(get_kernel(modules[i], "k"), &config, &out, 1), "constants of structs");
    EXPECT(results[0] == 2 + 30 + 1200 + 5000 && results[1] == -2.5 + 90 + 1200 + 5000);
  }
  kjit_builder *b;
  require(kjit_create_builder(context, "built", &b), "a builder");
  kjit_node constant = kjit_build_constant(b, "rows", row, rows, &two, 1),
            nothing = kjit_build_constant(b, "nothing", KJIT_F32, NULL, (int64_t[]){ 0 }, 1);
  kjit_build_begin_kernel(b, "k");
  kjit_node r = kjit_build_parameter(b, "r", KJIT_ANY), extent = kjit_build_integer(b, 2), i;
  kjit_build_for_grid(b, &extent, 1, &i);
  kjit_node at =
    kjit_build_select_field(b,
                            kjit_build_select_field(b, kjit_build_index(b, constant, &i, 1), "at"),
                            "y");
  kjit_build_assign(b, kjit_build_index(b, r, &i, 1), KJIT_OP_STORE,
                    kjit_build_binary(b, KJIT_OP_ADD, kjit_build_cast(b, KJIT_F64, at),
                                      kjit_build_cast(b, KJIT_F64,
                                                      kjit_build_call(b, "len", &nothing, 1))));
  kjit_build_end(b);
  kjit_build_end(b);
  require(kjit_finish_builder(b, &built), "building");
  kjit_destroy_builder(b);
  require(kjit_launch(get_kernel(built, "k"), &config, &out, 1), "built constants of structs");
  EXPECT(results[0] == 2 && results[1] == -2.5);
  kjit_free(context, printed);
  kjit_free(context, twice);
  kjit_module *all[] = { open, table, one, none, built, again };
  for (int k = 0; k < 6; k++) kjit_release_module(all[k]);
}

int main(int argc, char **argv)
{
  kjit_module *module;
  bool is_cuda = argc > 1 && !strcmp(argv[1], "cuda");
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  require(kjit_get_device(context, is_cuda ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0, &device),
          "a device");
  make_types();
  check_types();
  refuse_types();
  require(kjit_parse_module(context, "structs", text, sizeof text - 1, &module), "parsing");
  launch_host_arrays(module);
  launch_prepared(module);
  launch_packed(module);
  launch_pointers(module);
  launch_built();
  pass_large();
  use_constants();
  kjit_release_module(module);
  kjit_destroy_context(context);
  return EXIT_SUCCESS;
}

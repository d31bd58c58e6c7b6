/* An application that uses every struct that can grow. It gets the same results if it is compiled
 * with the present headers, older headers or newer headers (NEWER). kjit neither reads nor writes
 * memory after the structs. */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

enum { GUARD = 64, FILL = 0x7e };
/* Declares a struct with meaningless bytes after it. */
#define GUARDED(type, name) \
  struct { \
    type value; \
    unsigned char guard[GUARD]; \
  } name; \
  memset(&name, FILL, sizeof name); \
  memset(&name.value, 0, sizeof name.value); \
  name.value.size_bytes = sizeof name.value
#define EXPECT_GUARD(name) EXPECT(is_filled(name.guard))

static kjit_context *context;

static void fail(const char *what, int line)
{
  char *text = context ? kjit_copy_diagnostics_text(context) : NULL;
  printf("line %d: %s\n%s", line, what, text ? text : "");
  exit(1);
}

static int is_filled(const unsigned char *bytes)
{
  for (int i = 0; i < GUARD; i++)
    if (bytes[i] != FILL) return 0;
  return 1;
}

static int says(const char *text)
{
  const kjit_diagnostic *found = kjit_get_diagnostic(context, 0);
  return found && strstr(found->message, text);
}

/* Expects that invalid sizes are rejected with a message that names the function and the struct. */
#define EXPECT_REFUSED(call, name, text) \
  do { \
    static const uint32_t wrong[] = { 0, 1, 4, 1u << 20, UINT32_MAX }; \
    for (size_t i_ = 0; i_ < sizeof wrong / sizeof *wrong; i_++) { \
      (name).size_bytes = wrong[i_]; \
      EXPECT((call) == KJIT_ERROR_MISUSE && (!context || says(text))); \
    } \
    (name).size_bytes = sizeof(name); \
  } while (0)

#ifdef NEWER
/* Expects that a field which this version of kjit does not know is rejected if it is set. */
#define EXPECT_NEWER_REFUSED(call, name, text) \
  do { \
    (name).newer_too = 1; \
    EXPECT((call) == KJIT_ERROR_MISUSE && (!context || says(text))); \
    (name).newer_too = 0; \
  } while (0)
#define SPOIL(name) ((name).newer = &(name), (name).newer_too = 1)
#define EXPECT_CLEARED(name) EXPECT(!(name).newer && !(name).newer_too)
#else
#define EXPECT_NEWER_REFUSED(call, name, text) (void)0
#define SPOIL(name) (void)0
#define EXPECT_CLEARED(name) (void)0
#endif

/* Tests a function that fills in a struct. */
#define EXPECT_FILLED(call, name, text) \
  do { \
    SPOIL((name).value); \
    EXPECT((call) == KJIT_OK && (name).value.size_bytes == sizeof(name).value); \
    EXPECT_GUARD(name); \
    EXPECT_CLEARED((name).value); \
    EXPECT_REFUSED(call, (name).value, text); \
  } while (0)

/* Tests a function that reads a struct. */
#define EXPECT_READ(call, name, text) \
  do { \
    EXPECT((call) == KJIT_OK); \
    EXPECT_REFUSED(call, (name).value, text); \
    EXPECT_NEWER_REFUSED(call, (name).value, "but this version of kjit knows only the fields"); \
  } while (0)

static int is_run;
static void run_parts(void *user, size_t count, void (*body)(void *data, size_t index), void *data)
{
  EXPECT(user == &context);
  is_run = 1;
  for (size_t i = 0; i < count; i++) body(data, i);
}
static int load_entry(void *user, const uint8_t *key, const void **data, size_t *size_bytes)
{
  (void)user, (void)key, (void)data, (void)size_bytes;
  return 0;
}
static void *no_memory(void *user, kjit_device *device, size_t size_bytes, kjit_stream *stream)
{
  (void)user, (void)device, (void)size_bytes, (void)stream;
  return NULL;
}
static void no_release(void *user, kjit_device *device, void *memory, size_t size_bytes,
                       kjit_stream *stream)
{
  (void)user, (void)device, (void)memory, (void)size_bytes, (void)stream;
}

static void make_context(void)
{
  GUARDED(kjit_config, config);
  GUARDED(kjit_executor, executor);
  GUARDED(kjit_cache_store, store);
  GUARDED(kjit_device_allocator, allocator);
  kjit_context *made;
  executor.value.user = &context;
  executor.value.concurrency = 2;
  executor.value.run = run_parts;
  store.value.load = load_entry;
  allocator.value.allocate = no_memory;
  allocator.value.release = no_release;
  config.value.executor = &executor.value;
  config.value.cache_store = &store.value;
  config.value.device_allocator = &allocator.value;
  EXPECT_REFUSED(kjit_create_context(&config.value, &made), config.value, "");
  EXPECT_REFUSED(kjit_create_context(&config.value, &made), executor.value, "");
  EXPECT_REFUSED(kjit_create_context(&config.value, &made), store.value, "");
  EXPECT_REFUSED(kjit_create_context(&config.value, &made), allocator.value, "");
  EXPECT_NEWER_REFUSED(kjit_create_context(&config.value, &made), config.value, "");
  EXPECT_NEWER_REFUSED(kjit_create_context(&config.value, &made), executor.value, "");
  EXPECT_NEWER_REFUSED(kjit_create_context(&config.value, &made), store.value, "");
  EXPECT_NEWER_REFUSED(kjit_create_context(&config.value, &made), allocator.value, "");
  EXPECT(kjit_create_context(&config.value, &context) == KJIT_OK);
  /* the context has copied them */
  memset(&executor, FILL, sizeof executor);
  memset(&store, FILL, sizeof store);
  memset(&allocator, FILL, sizeof allocator);
}

static void check_launches(kjit_kernel *kernel, kjit_device *cpu)
{
  enum { N = 1 << 20 };
  GUARDED(kjit_launch_config, config);
  GUARDED(kjit_array_config, array_config);
  int64_t shape = N;
  kjit_array *array;
  kjit_prepared *prepared;
  array_config.value.device = cpu;
  array_config.value.element = KJIT_F32;
  array_config.value.rank = 1;
  array_config.value.shape = &shape;
  EXPECT_READ(kjit_create_array_with(&array_config.value, &array), array_config, "");
  array_config.value.size_bytes = 0;
  EXPECT(kjit_create_array_with(&array_config.value, &array) == KJIT_ERROR_MISUSE &&
         says("kjit_create_array_with: the size_bytes of a kjit_array_config is 0"));
  kjit_arg argument = kjit_arg_array(array);
  config.value.device = cpu;
  config.value.grid[0] = N / 256;
  config.value.block[0] = 256;
  for (int i = 0; i < 4; i++) /* the first launch compiles, and the others find the code */
    EXPECT_READ(kjit_launch(kernel, &config.value, &argument, 1), config,
                "kjit_launch: the size_bytes of a kjit_launch_config is ");
  EXPECT(is_run);
  EXPECT_REFUSED(kjit_prepare_launch(kernel, &config.value, &argument, 1, &prepared), config.value,
                 "kjit_prepare_launch: the size_bytes of a kjit_launch_config is ");
  EXPECT_NEWER_REFUSED(kjit_prepare_launch(kernel, &config.value, &argument, 1, &prepared),
                       config.value, "of the kjit_launch_config is not 0");
  EXPECT(kjit_prepare_launch(kernel, &config.value, &argument, 1, &prepared) == KJIT_OK);
  EXPECT(kjit_run_prepared(prepared, NULL) == KJIT_OK);
  kjit_destroy_prepared(prepared);
  kjit_release_array(array);
}

static void check_code(kjit_kernel *kernel, kjit_device *cpu)
{
  GUARDED(kjit_compile_options, options);
  GUARDED(kjit_specialization_info, info);
  GUARDED(kjit_occupancy, occupancy);
  void *code;
  size_t size_bytes;
  kjit_specialization *made = kjit_get_specialization(kernel, 0);
  options.value.target = "cpu";
  EXPECT_READ(kjit_compile(kernel, "f32[:]", &options.value, KJIT_STAGE_TYPED, &code, &size_bytes),
              options, "kjit_compile: the size_bytes of a kjit_compile_options is ");
  kjit_free(context, code);
#ifndef OLDER
  GUARDED(kjit_compile_limits, limits);
  options.value.limits = &limits.value;
  EXPECT_READ(kjit_compile(kernel, "f32[:]", &options.value, KJIT_STAGE_TYPED, &code, &size_bytes),
              limits, "kjit_compile: the size_bytes of a kjit_compile_limits is ");
  kjit_free(context, code);
#endif
  EXPECT_FILLED(kjit_get_specialization_info(made, &info.value), info,
                "kjit_get_specialization_info: the size_bytes of a kjit_specialization_info is ");
  EXPECT(!strcmp(info.value.target, "cpu") && info.value.launches >= 4);
  EXPECT_FILLED(kjit_get_occupancy(made, NULL, 0, &occupancy.value), occupancy,
                "kjit_get_occupancy: the size_bytes of a kjit_occupancy is ");
  EXPECT(occupancy.value.blocks == 1);

  struct {
    kjit_specialize_item items[3];
    unsigned char guard[GUARD];
  } all;
  static const char *const signatures[] = { "f32[:] C", "f64[:] C", "i32[:] C" };
  memset(&all, FILL, sizeof all);
  memset(all.items, 0, sizeof all.items);
  for (int i = 0; i < 3; i++) {
    all.items[i].size_bytes = sizeof all.items[i];
    all.items[i].kernel = kernel;
    all.items[i].signature = signatures[i];
  }
  EXPECT(kjit_specialize_all(context, cpu, all.items, 3, NULL, NULL) == KJIT_OK);
  for (int i = 0; i < 3; i++) EXPECT(all.items[i].status == KJIT_OK && all.items[i].specialization);
  EXPECT_GUARD(all);
  EXPECT_REFUSED(kjit_specialize_all(context, cpu, all.items, 3, NULL, NULL), all.items[0],
                 "kjit_specialize_all: the size_bytes of a kjit_specialize_item is ");
  /* an item with another size than the first one is rejected and not read, because the array does
   * not have so many bytes */
  all.items[2].size_bytes = 4096;
  EXPECT(kjit_specialize_all(context, cpu, all.items, 3, NULL, NULL) == KJIT_ERROR_MISUSE);
  EXPECT(strstr(kjit_get_diagnostic(context, 0)->message, "size_bytes of item 2 is 4096"));
}

static void check_infos(kjit_kernel *kernel, kjit_device *cpu)
{
  GUARDED(kjit_parameter_info, parameter);
  GUARDED(kjit_device_info, device);
  GUARDED(kjit_type_layout, layout);
  GUARDED(kjit_statistics, statistics);
  GUARDED(kjit_memory_statistics, memory);
  EXPECT_FILLED(kjit_get_parameter_info(kernel, 0, &parameter.value), parameter,
                "kjit_get_parameter_info: the size_bytes of a kjit_parameter_info is ");
  EXPECT(!strcmp(parameter.value.name, "x") && parameter.value.is_written);
  EXPECT_FILLED(kjit_get_device_info(cpu, &device.value), device,
                "kjit_get_device_info: the size_bytes of a kjit_device_info is ");
  EXPECT(device.value.kind == KJIT_DEVICE_CPU && !strcmp(device.value.target, "cpu"));
  EXPECT_FILLED(kjit_get_type_layout(context, KJIT_C128, &layout.value), layout,
                "kjit_get_type_layout: the size_bytes of a kjit_type_layout is ");
  EXPECT(layout.value.type_bytes == 16 && layout.value.field_count == 0);
  EXPECT_FILLED(kjit_get_statistics(context, &statistics.value), statistics,
                "kjit_get_statistics: the size_bytes of a kjit_statistics is ");
  EXPECT(statistics.value.launches >= 4 && statistics.value.compilations);
  EXPECT_FILLED(kjit_get_memory_statistics(cpu, &memory.value), memory,
                "kjit_get_memory_statistics: the size_bytes of a kjit_memory_statistics is ");
}

static void check_algorithms(void)
{
  GUARDED(kjit_algorithm_options, options);
  float x[] = { 1, 2, 3 }, sum = 0;
  int64_t shape = 3;
  kjit_tensor tx = kjit_make_tensor(x, KJIT_F32, 1, &shape),
              tr = kjit_make_tensor(&sum, KJIT_F32, 0, NULL);
  kjit_operand from = kjit_operand_of(kjit_arg_tensor(&tx)),
               to = kjit_operand_of(kjit_arg_tensor(&tr));
  kjit_operator add = kjit_operator_named("add");
  EXPECT_READ(kjit_reduce(context, &to, &from, &add, &options.value), options,
              "kjit_reduce: the size_bytes of a kjit_algorithm_options is ");
  EXPECT(sum == 6);
}

/* Solves for x = 2 with the matrix (3). */
static void check_solvers(void)
{
  GUARDED(kjit_solve_options, options);
  GUARDED(kjit_solution, solution);
  float three = 3, six = 6, result = 0;
  int32_t first = 0, ends[] = { 0, 1 };
  int64_t one = 1, two = 2;
  kjit_tensor tensors[] = { kjit_make_tensor(&three, KJIT_F32, 1, &one),
                            kjit_make_tensor(&first, KJIT_I32, 1, &one),
                            kjit_make_tensor(ends, KJIT_I32, 1, &two),
                            kjit_make_tensor(&six, KJIT_F32, 1, &one),
                            kjit_make_tensor(&result, KJIT_F32, 1, &one) };
  kjit_operand operands[5];
  for (int i = 0; i < 5; i++) operands[i] = kjit_operand_of(kjit_arg_tensor(&tensors[i]));
  kjit_csr matrix = { &operands[0], &operands[1], &operands[2], { 1, 1 } };
  kjit_linear_operator a = { .matrix = &matrix };
  EXPECT_READ(kjit_cg(context, &operands[4], &a, &operands[3], &options.value, &solution.value),
              options, "kjit_cg: the size_bytes of a kjit_solve_options is ");
  EXPECT(result == 2 && solution.value.status == KJIT_SOLVED);
  EXPECT_FILLED(kjit_cg(context, &operands[4], &a, &operands[3], &options.value, &solution.value),
                solution, "kjit_cg: the size_bytes of a kjit_solution is ");
}

static void check_diagnostics(void)
{
  GUARDED(kjit_diagnostic, diagnostic);
  diagnostic.value.message = "so it is";
  char *text = kjit_copy_diagnostic_text(&diagnostic.value);
  EXPECT(text && !strcmp(text, "error: so it is\n"));
  kjit_free(context, text);
  diagnostic.value.size_bytes = 8;
  EXPECT(!kjit_copy_diagnostic_text(&diagnostic.value));
}

static void check_parsing(void)
{
  static const char text[] = "kernel k(x) { x[0] = 1 }";
  GUARDED(kjit_parse_options, options);
  kjit_module *module;
  EXPECT_READ(kjit_parse_module_with(context, &options.value, "k.kir", text, sizeof text - 1,
                                     &module),
              options, "kjit_parse_module_with: the size_bytes of a kjit_parse_options is ");
}

static void check_expressions(void)
{
  GUARDED(kjit_expression_options, options);
  kjit_module *module;
  kjit_function *function;
  EXPECT_READ(kjit_parse_expression(context, &options.value, "1 + 2", 5, &module, &function),
              options, "kjit_parse_expression: the size_bytes of a kjit_expression_options is ");
}

static void check_formulas(void)
{
  GUARDED(kjit_formula_options, options);
  GUARDED(kjit_formula_run, run);
  GUARDED(kjit_formula_info, info);
  kjit_formula *formula;
  double value;
  const kjit_column result = { &value, NULL, 0 };
  EXPECT_READ(kjit_create_formula(context, &options.value, "1.5 + 2", 7, &formula), options,
              "kjit_create_formula: the size_bytes of a kjit_formula_options is ");
  EXPECT_READ(kjit_run_formula(formula, NULL, &result, 1, &run.value), run,
              "kjit_run_formula: the size_bytes of a kjit_formula_run is ");
  EXPECT_FILLED(kjit_get_formula_info(formula, &info.value), info,
                "kjit_get_formula_info: the size_bytes of a kjit_formula_info is ");
  kjit_destroy_formula(formula);
}

int main(void)
{
  static const char text[] = "kernel k(x) { for i in grid_range(len(x)) { x[i] = i } }";
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_device *cpu;
  make_context();
  EXPECT(kjit_parse_module(context, "k.kir", text, sizeof text - 1, &module) == KJIT_OK);
  EXPECT(kjit_get_kernel(module, "k", &kernel) == KJIT_OK);
  EXPECT(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &cpu) == KJIT_OK);
  check_launches(kernel, cpu);
  check_code(kernel, cpu);
  check_infos(kernel, cpu);
  check_algorithms();
  check_solvers();
  check_diagnostics();
  check_parsing();
  check_expressions();
  check_formulas();
  kjit_release_module(module);
  kjit_destroy_context(context);
  puts("the same");
  return 0;
}

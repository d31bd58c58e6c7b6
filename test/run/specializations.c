/* Inspection and use of compiled code by an application, with the real compiler: all stages of a
 * specialization as text, signatures compiled in the background and many at once, and code that one
 * process exports and another process imports without a compiler.
 * RUN: %programs/specializations cpu %t.blob
 * RUN: %if cuda %{ %programs/specializations cuda %t.cuda.blob %}
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] =
  "kernel scale(r, a, x) {\n  for i in grid_range(len(r)) { r[i] = a * x[i] }\n}\n"
  "kernel raised(r, n: i32) {\n  if n < 0 { raise \"negative\" }\n  r[0] = n\n}\n";

enum { COUNT = 1000 };

static int failures;
static kjit_context *context;

#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static void fail(const char *what, int line)
{
  char *message = context ? kjit_copy_diagnostics_text(context) : NULL;
  fprintf(stderr, "line %d: %s\n%s", line, what, message ? message : "");
  kjit_free(context, message);
  failures++;
}

static kjit_module *open_all(kjit_device_kind kind, kjit_device **device)
{
  kjit_module *module = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  if (kjit_create_context(&config, &context) != KJIT_OK ||
      kjit_get_device(context, kind, 0, device) != KJIT_OK ||
      kjit_parse_module(context, "scale.kir", text, strlen(text), &module) != KJIT_OK)
    exit(1);
  return module;
}

static kjit_kernel *kernel_of(kjit_module *module, const char *name)
{
  kjit_kernel *kernel = NULL;
  if (kjit_get_kernel(module, name, &kernel) != KJIT_OK) exit(1);
  return kernel;
}

/* Runs scale on f32 or f64 and checks every element. */
static void check_scale(kjit_device *device, kjit_kernel *kernel, kjit_type type)
{
  int64_t length = COUNT;
  size_t bytes = COUNT * (type == KJIT_F32 ? sizeof(float) : sizeof(double));
  kjit_array *r = NULL, *x = NULL;
  void *memory = malloc(bytes);
  for (int i = 0; i < COUNT; i++) {
    if (type == KJIT_F32) ((float *)memory)[i] = (float)i;
    else ((double *)memory)[i] = i;
  }
  EXPECT(kjit_create_array(device, type, &length, 1, &r) == KJIT_OK &&
         kjit_create_array(device, type, &length, 1, &x) == KJIT_OK);
  EXPECT(kjit_copy_from_host(x, memory, bytes, NULL) == KJIT_OK);
  kjit_arg arguments[] = { kjit_arg_array(r), type == KJIT_F32 ? kjit_arg_f32(3) : kjit_arg_f64(3),
                           kjit_arg_array(x) };
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  EXPECT(kjit_launch(kernel, &config, arguments, 3) == KJIT_OK);
  EXPECT(kjit_copy_to_host(r, memory, bytes, NULL) == KJIT_OK);
  for (int i = 0; i < COUNT; i++)
    if ((type == KJIT_F32 ? ((float *)memory)[i] : ((double *)memory)[i]) != 3.0 * i) {
      fail("an element of the result", i);
      break;
    }
  free(memory);
  kjit_release_array(r);
  kjit_release_array(x);
}

/* ---- stages ---- */

static bool contains(const char *bytes, size_t size_bytes, const char *expected)
{
  size_t length = strlen(expected);
  for (size_t i = 0; i + length <= size_bytes; i++)
    if (!memcmp(bytes + i, expected, length)) return true;
  return false;
}

static void check_stage(kjit_specialization *specialization, kjit_stage stage, const char *expected)
{
  void *code = NULL;
  size_t size_bytes = 0;
  EXPECT(kjit_copy_specialization_code(specialization, stage, &code, &size_bytes) == KJIT_OK);
  if (code && !contains(code, size_bytes, expected)) fail(expected, (int)stage);
  kjit_free(context, code);
}

/* Checks the disassembly if the machine has a disassembler. */
static void check_sass(kjit_specialization *specialization)
{
  void *text = NULL;
  size_t size_bytes = 0;
  kjit_status status =
    kjit_copy_specialization_code(specialization, KJIT_STAGE_SASS, &text, &size_bytes);
  EXPECT(status == KJIT_OK || status == KJIT_ERROR_NO_COMPILER);
  EXPECT(status != KJIT_OK ||
         (contains(text, size_bytes, "scale") && contains(text, size_bytes, "EXIT") &&
          ((char *)text)[size_bytes] == 0));
  if (status != KJIT_OK) printf("no SASS: %s\n", kjit_get_diagnostic(context, 0)->message);
  kjit_free(context, text);
}

static void check_stages(kjit_device_kind kind, kjit_kernel *kernel)
{
  kjit_specialization *specialization = kjit_get_specialization(kernel, 0);
  void *binary = NULL;
  size_t size_bytes = 0;
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_occupancy occupancy = { .size_bytes = sizeof occupancy };
  kjit_get_specialization_info(specialization, &info);
  EXPECT(info.is_loaded && strcmp(info.signature, "f32[:] C, f32, f32[:] C") == 0);
  check_stage(specialization, KJIT_STAGE_KIR, "kernel scale");
  check_stage(specialization, KJIT_STAGE_TYPED, "f32");
  check_stage(specialization, KJIT_STAGE_LLVM, "define");
  check_stage(specialization, KJIT_STAGE_LLVM_OPT, "fmul");
  if (kind == KJIT_DEVICE_CUDA) check_stage(specialization, KJIT_STAGE_PTX, ".visible .entry");
  if (kind == KJIT_DEVICE_CUDA) check_stage(specialization, KJIT_STAGE_CUBIN, "\177ELF");
  if (kind == KJIT_DEVICE_CUDA) check_sass(specialization);
  if (kind == KJIT_DEVICE_CPU) check_stage(specialization, KJIT_STAGE_ASM, ".text");
  EXPECT(kjit_copy_specialization_code(specialization,
                                       kind == KJIT_DEVICE_CUDA ? KJIT_STAGE_ASM : KJIT_STAGE_PTX,
                                       &binary, &size_bytes) == KJIT_ERROR_UNSUPPORTED);
  EXPECT(kjit_copy_specialization_binary(specialization, &binary, &size_bytes) == KJIT_OK);
  EXPECT(size_bytes > 4 && memcmp(binary, "\177ELF", 4) == 0);
  kjit_free(context, binary);
  EXPECT(kjit_get_occupancy(specialization, NULL, 0, &occupancy) == KJIT_OK);
  EXPECT(occupancy.block[0] >= 32 && occupancy.blocks > 0 &&
         occupancy.threads <= occupancy.max_threads);
}

/* ---- ahead of time ---- */

typedef struct result {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  int calls;
  kjit_status status;
} result;

static void take_result(void *user, kjit_status status, kjit_specialization *specialization)
{
  result *r = user;
  pthread_mutex_lock(&r->mutex);
  r->calls++;
  r->status = status == KJIT_OK && !specialization ? KJIT_ERROR_MISUSE : status;
  pthread_cond_signal(&r->changed);
  pthread_mutex_unlock(&r->mutex);
}

static void check_background(kjit_device *device, kjit_kernel *kernel)
{
  result r = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
  EXPECT(kjit_specialize_async(kernel, device, "f64[:] C, f64, f64[:] C", take_result, &r) ==
         KJIT_OK);
  pthread_mutex_lock(&r.mutex);
  while (!r.calls) pthread_cond_wait(&r.changed, &r.mutex);
  pthread_mutex_unlock(&r.mutex);
  EXPECT(r.status == KJIT_OK);
  kjit_statistics before = { .size_bytes = sizeof before }, after = { .size_bytes = sizeof after };
  kjit_get_statistics(context, &before);
  check_scale(device, kernel, KJIT_F64);
  kjit_get_statistics(context, &after);
  EXPECT(after.compilations == before.compilations); /* the launch found it */
}

static void count_calls(void *user, size_t done, size_t count, const kjit_specialize_item *item)
{
  int *calls = user;
  EXPECT(done == (size_t)++ * calls && count == 4 && item);
}

static void check_many(kjit_device *device, kjit_kernel *kernel)
{
  int calls = 0;
  kjit_specialize_item items[] = {
    { .size_bytes = sizeof items[0], .kernel = kernel, .signature = "i32[:] C, i32, i32[:] C" },
    { .size_bytes = sizeof items[0], .kernel = kernel, .signature = "i64[:] C, i64, i64[:] C" },
    /* a float cannot be converted to an integer type */
    { .size_bytes = sizeof items[0], .kernel = kernel, .signature = "i32[:] C, f32, f32[:] C" },
    { .size_bytes = sizeof items[0], .kernel = kernel, .signature = "u32[:] C, u32, u32[:] C" }
  };
  EXPECT(kjit_specialize_all(context, device, items, 4, count_calls, &calls) == KJIT_ERROR_TYPE);
  EXPECT(calls == 4);
  EXPECT(items[0].status == KJIT_OK && items[1].status == KJIT_OK &&
         items[2].status == KJIT_ERROR_TYPE && items[3].status == KJIT_OK);
}

/* ---- another process ---- */

static int maps_compiler(void)
{
  char line[4096];
  int is_mapped = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  while (file && fgets(line, sizeof line, file))
    is_mapped = is_mapped || strstr(line, "libkjit-compiler") || strstr(line, "libLLVM");
  if (file) fclose(file);
  return is_mapped;
}

static void write_blob(kjit_module *module, const char *path)
{
  void *blob = NULL;
  size_t size_bytes = 0;
  EXPECT(kjit_export_code(module, &blob, &size_bytes) == KJIT_OK);
  FILE *file = fopen(path, "wb");
  EXPECT(file && fwrite(blob, 1, size_bytes, file) == size_bytes);
  if (file) fclose(file);
  kjit_free(context, blob);
}

static void run_importer(kjit_device_kind kind, const char *path)
{
  kjit_device *device;
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_module *module = open_all(kind, &device);
  FILE *file = fopen(path, "rb");
  char *blob = malloc(1 << 22);
  size_t size_bytes = file && blob ? fread(blob, 1, 1 << 22, file) : 0;
  if (file) fclose(file);
  EXPECT(kjit_import_code(context, blob, size_bytes) == KJIT_OK);
  check_scale(device, kernel_of(module, "scale"), KJIT_F32);
  check_scale(device, kernel_of(module, "scale"), KJIT_F64);
  kjit_specialization_info info = { .size_bytes = sizeof info };
  kjit_get_specialization_info(kjit_get_specialization(kernel_of(module, "scale"), 0), &info);
  EXPECT(info.is_imported);
  kjit_get_statistics(context, &statistics);
  EXPECT(statistics.compilations == 0 && statistics.imports == 2);
  EXPECT(!maps_compiler());
  blob[size_bytes / 2] ^= 1;
  EXPECT(kjit_import_code(context, blob, size_bytes) == KJIT_ERROR_IO);
  free(blob);
  kjit_destroy_context(context);
}

int main(int argc, char **argv)
{
  if (argc < 3) return 2;
  kjit_device_kind kind = strcmp(argv[1], "cuda") == 0 ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  if (argc > 3) { /* the other process */
    run_importer(kind, argv[2]);
    return failures != 0;
  }
  kjit_device *device;
  kjit_module *module = open_all(kind, &device);
  kjit_kernel *kernel = kernel_of(module, "scale");
  check_scale(device, kernel, KJIT_F32);
  check_stages(kind, kernel);
  check_background(device, kernel);
  check_many(device, kernel);
  write_blob(module, argv[2]);
  kjit_destroy_context(context);
  context = NULL;
  char command[4096];
  snprintf(command, sizeof command, "%s %s %s import", argv[0], argv[1], argv[2]);
  int status = system(command);
  if (!WIFEXITED(status) || WEXITSTATUS(status)) fail("the importing process", __LINE__);
  unlink(argv[2]);
  return failures != 0;
}

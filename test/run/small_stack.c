/* An application whose threads have a stack of 256 KiB. It parses, builds, compiles, launches and
 * destroys modules that are as deeply nested as kjit allows, and long.
 * RUN: %programs/small_stack cpu
 * RUN: %if cuda %{ %programs/small_stack cuda %}
 */
#include <kjit/kjit.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_BYTES = 256 * 1024, LOOPS = 100, DEPTH = 95 };

static kjit_context *context;
static kjit_device *device;

static void require(kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  char *message = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), message ? message : "");
  exit(EXIT_FAILURE);
}

static char text[1 << 16];
static size_t length;

static void add(const char *format, ...)
{
  va_list list;
  va_start(list, format);
  length += (size_t)vsnprintf(text + length, sizeof text - length, format, list);
  va_end(list);
}

/* Writes a module that computes y[0], to which x[0] is added LOOPS times; y[1], to which nested ifs
 * add 1 DEPTH times; and y[2], a sum in nested parentheses. */
static void write_module(void)
{
  add("kernel k(y, x) {\n  var s = f32(0)\n");
  for (int i = 0; i < LOOPS; i++) add("  for j in range(len(x)) { s += x[j] }\n");
  add("  y[0] = s\n  var t = f32(0)\n");
  for (int i = 0; i < DEPTH; i++) add("  if x[0] > -%d { t += 1\n", i + 1);
  for (int i = 0; i < DEPTH; i++) add("}");
  add("\n  y[1] = t\n  y[2] = ");
  for (int i = 0; i < DEPTH; i++) add("(");
  add("x[0] - 1");
  for (int i = 0; i < DEPTH; i++) add(" + 1)");
  add("\n}\n");
}

static kjit_module *parse_module(void)
{
  kjit_module *module;
  write_module();
  require(kjit_parse_module(context, "deep.kir", text, length, &module), "parse");
  return module;
}

static kjit_node element(kjit_builder *b, kjit_node array, int index)
{
  kjit_node at = kjit_build_integer(b, index);
  return kjit_build_index(b, array, &at, 1);
}

/* Builds a module with the same sums: a chain of nodes, and nested ifs. */
static kjit_module *build_module(void)
{
  kjit_builder *b;
  kjit_module *module;
  require(kjit_create_builder(context, "deep", &b), "builder");
  kjit_build_begin_kernel(b, "k");
  kjit_node y = kjit_build_parameter(b, "y", KJIT_ANY), x = kjit_build_parameter(b, "x", KJIT_ANY);
  kjit_node first = kjit_build_let(b, "first", element(b, x, 0));
  kjit_node s = kjit_build_var(b, "s", KJIT_F32, kjit_build_integer(b, 0));
  for (int i = 0; i < LOOPS; i++) kjit_build_assign(b, s, KJIT_OP_ADD, first);
  kjit_build_assign(b, element(b, y, 0), KJIT_OP_STORE, s);
  kjit_node t = kjit_build_var(b, "t", KJIT_F32, kjit_build_integer(b, 0));
  for (int i = 0; i < DEPTH; i++) {
    kjit_build_if(b, kjit_build_binary(b, KJIT_OP_GT, first, kjit_build_integer(b, -i - 1)));
    kjit_build_assign(b, t, KJIT_OP_ADD, kjit_build_integer(b, 1));
  }
  for (int i = 0; i < DEPTH; i++) kjit_build_end(b);
  kjit_build_assign(b, element(b, y, 1), KJIT_OP_STORE, t);
  kjit_node sum = kjit_build_binary(b, KJIT_OP_SUB, first, kjit_build_integer(b, 1));
  for (int i = 0; i < DEPTH; i++)
    sum = kjit_build_binary(b, KJIT_OP_ADD, sum, kjit_build_integer(b, 1));
  kjit_build_assign(b, element(b, y, 2), KJIT_OP_STORE, sum);
  kjit_build_end(b);
  kjit_status status = kjit_finish_builder(b, &module);
  kjit_destroy_builder(b);
  require(status, "build");
  return module;
}

static void launch(kjit_module *module, const char *what)
{
  float y[3] = { 0 }, x[1] = { 1 };
  int64_t extents[2] = { 3, 1 };
  kjit_kernel *kernel;
  kjit_tensor tensors[2] = {
    { .data = y, .device_type = 1, .rank = 1, .code = 2, .bits = 32, .lanes = 1, .shape = extents },
    { .data = x,
      .device_type = 1,
      .rank = 1,
      .code = 2,
      .bits = 32,
      .lanes = 1,
      .shape = &extents[1] }
  };
  kjit_arg arguments[2] = { kjit_arg_tensor(&tensors[0]), kjit_arg_tensor(&tensors[1]) };
  kjit_launch_config config = {
    .size_bytes = sizeof config, .device = device, .grid = { 1 }, .block = { 1 }
  };
  require(kjit_get_kernel(module, "k", &kernel), "kernel");
  require(kjit_launch(kernel, &config, arguments, 2), what);
  kjit_release_module(module);
  if (y[0] == LOOPS && y[1] == DEPTH && y[2] == DEPTH) return;
  fprintf(stderr, "%s: %g %g %g\n", what, (double)y[0], (double)y[1], (double)y[2]);
  exit(EXIT_FAILURE);
}

static void *work(void *kind)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  require(kjit_create_context(&config, &context), "context");
  require(kjit_get_device(context, strcmp(kind, "cpu") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0,
                          &device),
          kind);
  launch(parse_module(), "parsed");
  launch(build_module(), "built");
  kjit_destroy_context(context);
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  if (pthread_create(&thread, &attributes, work, argc > 1 ? argv[1] : (char *)"cpu"))
    return EXIT_FAILURE;
  pthread_join(thread, NULL);
  return EXIT_SUCCESS;
}

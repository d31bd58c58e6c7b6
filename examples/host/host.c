/* host.c: a query engine compiles a user's expression, CASE WHEN a + b > limit THEN 0 ELSE a + b
 * END, to a kernel and runs it over batches of columns. The kernel is built with the builder API
 * and never sees a type: the first batch of i64 columns and the first batch of f32 columns each
 * create a specialization, and later batches find it in the cache. host [cpu|cuda] chooses the
 * device, by default the CPU. */
#include <inttypes.h>
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 100003, BATCHES = 3 };

static int report(kjit_context *context, kjit_status status, const char *what)
{
  char *text = kjit_copy_diagnostics_text(context);
  fprintf(stderr, "%s: %s\n%s", what, kjit_get_status_name(status), text ? text : "");
  kjit_free(context, text);
  return EXIT_FAILURE;
}

/* kernel udf(out, a, b, limit) { for i in grid_range(len(out)) { let s = a[i] + b[i]; out[i] = s >
 * limit ? 0 : s } } The program checks no builder call: the builder keeps the first error, with the
 * query's line and column, until kjit_finish_builder. */
static kjit_status build_udf(kjit_context *context, kjit_module **module)
{
  kjit_builder *b;
  kjit_status status = kjit_create_builder(context, "query 17", &b);
  if (status != KJIT_OK) return status;
  kjit_set_builder_location(b, "query 17", 1, 8);
  kjit_build_begin_kernel(b, "udf");
  kjit_node out = kjit_build_parameter(b, "out", KJIT_ANY);
  kjit_node column_a = kjit_build_parameter(b, "a", KJIT_ANY);
  kjit_node column_b = kjit_build_parameter(b, "b", KJIT_ANY);
  kjit_node limit = kjit_build_parameter(b, "limit", KJIT_ANY);
  kjit_node rows = kjit_build_call(b, "len", &out, 1), i;
  kjit_build_for_grid(b, &rows, 1, &i);
  kjit_set_builder_location(b, "query 17", 1, 18);
  kjit_node sum =
    kjit_build_let(b, "s",
                   kjit_build_binary(b, KJIT_OP_ADD, kjit_build_index(b, column_a, &i, 1),
                                     kjit_build_index(b, column_b, &i, 1)));
  kjit_node value = kjit_build_conditional(b, kjit_build_binary(b, KJIT_OP_GT, sum, limit),
                                           kjit_build_integer(b, 0), sum);
  kjit_build_assign(b, kjit_build_index(b, out, &i, 1), KJIT_OP_STORE, value);
  kjit_build_end(b); /* for */
  kjit_build_end(b); /* kernel */
  status = kjit_finish_builder(b, module);
  kjit_destroy_builder(b);
  return status;
}

/* The columns of one query: out, a, b. Their type is known only at run time. */
typedef struct columns {
  kjit_type type;
  size_t element_bytes;
  int64_t rows;
  void *data[3];
  kjit_tensor tensors[3];
} columns;

static void describe_column(columns *c, int k, uint8_t code)
{
  c->tensors[k] = (kjit_tensor){ .data = c->data[k],
                                 .device_type = KJIT_DEVICE_CPU,
                                 .rank = 1,
                                 .code = code,
                                 .bits = (uint8_t)(8 * c->element_bytes),
                                 .lanes = 1,
                                 .shape = &c->rows };
}

static int make_columns(columns *c, kjit_type type)
{
  int is_float = type == KJIT_F32;
  c->type = type;
  c->element_bytes = is_float ? sizeof(float) : sizeof(int64_t);
  c->rows = ROWS;
  for (int k = 0; k < 3; k++) {
    c->data[k] = calloc(ROWS, c->element_bytes);
    if (!c->data[k]) return 0;
    describe_column(c, k, is_float ? 2 : 0);
  }
  return 1;
}

static void free_columns(columns *c)
{
  for (int k = 0; k < 3; k++) free(c->data[k]);
}

static void fill_columns(columns *c, int batch)
{
  for (int64_t i = 0; i < ROWS; i++) {
    int64_t a = (i * 37 + batch) % 101, b = i % 7 - batch;
    if (c->type == KJIT_F32) {
      ((float *)c->data[1])[i] = (float)a / 4;
      ((float *)c->data[2])[i] = (float)b / 2;
    } else {
      ((int64_t *)c->data[1])[i] = a;
      ((int64_t *)c->data[2])[i] = b;
    }
  }
}

static int64_t count_wrong_rows(const columns *c, double limit)
{
  int64_t wrong = 0;
  for (int64_t i = 0; i < ROWS; i++) {
    if (c->type == KJIT_F32) {
      float sum = ((float *)c->data[1])[i] + ((float *)c->data[2])[i];
      wrong += ((float *)c->data[0])[i] != (sum > (float)limit ? 0 : sum);
    } else {
      int64_t sum = ((int64_t *)c->data[1])[i] + ((int64_t *)c->data[2])[i];
      wrong += ((int64_t *)c->data[0])[i] != (sum > (int64_t)limit ? 0 : sum);
    }
  }
  return wrong;
}

/* Runs the batches of a query, prints for each batch whether its code was compiled before, and
 * checks every row. */
static int run_batches(kjit_context *context, kjit_kernel *udf, kjit_device *device, columns *c,
                       const char *name)
{
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  for (int batch = 0; batch < BATCHES; batch++) {
    double limit = 10 + batch;
    fill_columns(c, batch);
    /* The limit is an untyped number: it takes the type of the columns, like a literal. */
    kjit_arg arguments[] = { kjit_with_access(kjit_arg_tensor(&c->tensors[0]), KJIT_ACCESS_OUT),
                             kjit_arg_tensor(&c->tensors[1]), kjit_arg_tensor(&c->tensors[2]),
                             kjit_arg_number(limit) };
    kjit_statistics before = { .size_bytes = sizeof before },
                    after = { .size_bytes = sizeof after };
    kjit_get_statistics(context, &before);
    kjit_status status = kjit_launch(udf, &config, arguments, 4);
    if (status == KJIT_OK) status = kjit_synchronize_device(device);
    if (status != KJIT_OK) return report(context, status, name);
    kjit_get_statistics(context, &after);
    int64_t wrong = count_wrong_rows(c, limit);
    printf("%s batch %d: %s, %" PRId64 " of %d rows wrong\n", name, batch,
           after.compilations > before.compilations ? "compiled"
           : after.memory_hits > before.memory_hits ? "from the cache"
                                                    : "neither compiled nor found",
           wrong, ROWS);
    if (wrong) return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

static int run_queries(kjit_context *context, kjit_kernel *udf, kjit_device *device)
{
  static const struct {
    kjit_type type;
    const char *name;
  } queries[] = { { KJIT_I64, "i64" }, { KJIT_F32, "f32" } };
  int result = EXIT_SUCCESS;
  for (size_t q = 0; q < sizeof queries / sizeof *queries && result == EXIT_SUCCESS; q++) {
    columns c = { 0 };
    result = make_columns(&c, queries[q].type)
               ? run_batches(context, udf, device, &c, queries[q].name)
               : EXIT_FAILURE;
    free_columns(&c);
  }
  return result;
}

int main(int argc, char **argv)
{
  kjit_context *context = NULL;
  kjit_module *module = NULL;
  kjit_kernel *udf;
  kjit_device *device;
  char *text = NULL;
  kjit_status status;
  const char *name = argc > 1 ? argv[1] : "cpu";
  kjit_device_kind kind = strcmp(name, "cuda") ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA;
  int result = EXIT_FAILURE;

  if (argc > 2 || (kind == KJIT_DEVICE_CPU && strcmp(name, "cpu"))) {
    fprintf(stderr, "usage: host [cpu|cuda], not '%s'\n", argv[argc - 1]);
    return 2;
  }
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  if ((status = build_udf(context, &module)) != KJIT_OK) {
    report(context, status, "compiling the expression");
  } else if ((status = kjit_copy_module_text(module, &text)) != KJIT_OK ||
             (status = kjit_get_kernel(module, "udf", &udf)) != KJIT_OK) {
    report(context, status, "udf");
  } else if ((status = kjit_get_device(context, kind, 0, &device)) != KJIT_OK) {
    report(context, status, "the device");
  } else {
    kjit_statistics statistics = { .size_bytes = sizeof statistics };
    printf("%s", text);
    result = run_queries(context, udf, device);
    kjit_get_statistics(context, &statistics);
    printf("launches %" PRIu64 ", compilations %" PRIu64 ", hits %" PRIu64 "\n",
           statistics.launches, statistics.compilations, statistics.memory_hits);
  }
  kjit_free(context, text);
  kjit_release_module(module);
  kjit_destroy_context(context);
  return result;
}

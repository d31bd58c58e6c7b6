/* columns_check.c: tests the columns library. It builds Arrow arrays from fresh random data and
 * compares the results with plain loops. It tests functions, filters and groups of columns of
 * several types, with and without nulls, at offsets that are not multiples of 8; the release of
 * arrays; and the errors.
 *
 *   columns_check [cpu|cuda] [folder of columns.kir] [rows] [seed]
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "columns.h"

static columns_engine *engine;
static int releases; /* number of released arrays and schemas of producers */

static void stop(const char *what, const char *file, int line)
{
  fprintf(stderr, "%s:%d: %s\n%s\n", file, line, what, columns_get_error(engine));
  exit(EXIT_FAILURE);
}
#define REQUIRE(condition) \
  do { \
    if (!(condition)) stop(#condition, __FILE__, __LINE__); \
  } while (0)
#define SUCCEED(call) REQUIRE((call) == KJIT_OK)

/* ---- random numbers ---- */

static uint64_t state;

static uint64_t draw(void) /* splitmix64 */
{
  uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* ---- a producer ---- */

/* A column in plain C arrays. */
typedef struct plain {
  const char *format;
  int64_t length, offset;
  void *values;
  uint8_t *bits; /* NULL if the column has no nulls */
} plain;

typedef struct producer {
  const void *buffers[2];
} producer;

static size_t bytes_of(const plain *p)
{
  switch (*p->format) {
  case 'c':
  case 'b': return 1;
  case 'i': return 4;
  default: return 8;
  }
}

static bool bit(const uint8_t *bits, int64_t i) { return bits[i / 8] >> (i % 8) & 1; }
static bool is_valid(const plain *p, int64_t row)
{
  return !p->bits || bit(p->bits, p->offset + row);
}
static int64_t integer(const plain *p, int64_t row)
{
  int64_t i = p->offset + row;
  switch (*p->format) {
  case 'b': return bit(p->values, i);
  case 'c': return ((const int8_t *)p->values)[i];
  case 'i': return ((const int32_t *)p->values)[i];
  default: return ((const int64_t *)p->values)[i];
  }
}
static double real(const plain *p, int64_t row)
{
  return *p->format == 'g' ? ((const double *)p->values)[p->offset + row] : (double)integer(p, row);
}

/* Makes rows of small numbers. One row of `nulls` is null on average; 0 means no validity bitmap.
 * Buffers end directly after the last row, so that a sanitizer finds reads beyond it. */
static plain make_plain(const char *format, int64_t length, int64_t offset, unsigned nulls)
{
  plain p = { .format = format, .length = length, .offset = offset };
  int64_t total = length + offset;
  size_t bytes = *format == 'b' ? (size_t)((total + 7) / 8) : (size_t)total * bytes_of(&p);
  p.values = malloc(bytes + !bytes);
  if (nulls) p.bits = malloc((size_t)((total + 7) / 8) + 1);
  REQUIRE(p.values && (!nulls || p.bits));
  for (size_t i = 0; i < bytes; i++) ((uint8_t *)p.values)[i] = (uint8_t)draw();
  for (int64_t i = 0; i < total; i++) {
    int64_t v = (int64_t)(draw() % 41) - 20;
    if (*format == 'i') ((int32_t *)p.values)[i] = (int32_t)v * 1000003;
    if (*format == 'l') ((int64_t *)p.values)[i] = v * INT64_C(1234567890123);
    if (*format == 'g') ((double *)p.values)[i] = (double)v / 4;
    if (!nulls) continue;
    /* the bits after the end are arbitrary as well */
    if (i % 8 == 0) p.bits[i / 8] = (uint8_t)draw();
    bool valid = draw() % nulls != 0;
    p.bits[i / 8] = (uint8_t)((p.bits[i / 8] & ~(1 << i % 8)) | valid << i % 8);
  }
  return p;
}

static void free_plain(plain *p)
{
  free(p->values);
  free(p->bits);
}

static void release_array(struct ArrowArray *array)
{
  releases++;
  free(array->private_data);
  array->release = NULL;
}
static void release_schema(struct ArrowSchema *schema)
{
  releases++;
  schema->release = NULL;
}

static void produce(const plain *p, struct ArrowSchema *schema, struct ArrowArray *array)
{
  producer *made = malloc(sizeof *made);
  REQUIRE(made);
  made->buffers[0] = p->bits;
  made->buffers[1] = p->values;
  *schema = (struct ArrowSchema){ .format = p->format,
                                  .flags = ARROW_FLAG_NULLABLE,
                                  .release = release_schema };
  *array = (struct ArrowArray){ .length = p->length,
                                .null_count = p->bits ? -1 : 0,
                                .offset = p->offset,
                                .n_buffers = 2,
                                .buffers = made->buffers,
                                .release = release_array,
                                .private_data = made };
}

static column *take(const plain *p)
{
  struct ArrowSchema schema;
  struct ArrowArray array;
  column *taken = NULL;
  produce(p, &schema, &array);
  SUCCEED(columns_take(engine, &schema, &array, &taken));
  REQUIRE(!schema.release && !array.release);
  return taken;
}

/* ---- a consumer ---- */

/* Makes a plain column over the buffers that a column exports. */
typedef struct exported {
  struct ArrowSchema schema;
  struct ArrowArray array;
  plain p;
} exported;

static exported export(column *c)
{
  exported e;
  SUCCEED(columns_export(c, &e.schema, &e.array));
  REQUIRE(e.array.n_buffers == 2 && !e.array.n_children && !e.array.dictionary);
  e.p = (plain){ .format = e.schema.format,
                 .length = e.array.length,
                 .offset = e.array.offset,
                 .values = (void *)(uintptr_t)e.array.buffers[1],
                 .bits = (uint8_t *)(uintptr_t)e.array.buffers[0] };
  int64_t nulls = 0;
  for (int64_t i = 0; i < e.p.length; i++) nulls += !is_valid(&e.p, i);
  REQUIRE(nulls == e.array.null_count);
  return e;
}

/* Exports a computed column and checks the alignment of its buffers that Arrow recommends. */
static exported export_result(column *c)
{
  exported e = export(c);
  REQUIRE((uintptr_t)e.p.values % 64 == 0 && (uintptr_t)e.p.bits % 64 == 0 && !e.p.offset);
  return e;
}

static void release_exported(exported *e)
{
  e->array.release(&e->array);
  e->schema.release(&e->schema);
  REQUIRE(!e->array.release && !e->schema.release);
}

/* ---- functions ---- */

static column_function *define(const char *text, const char *name, size_t count, column_nulls nulls)
{
  column_function *f = NULL;
  SUCCEED(columns_define(engine, text, name, count, nulls, &f));
  return f;
}

static void check_functions(const plain *a, const plain *b)
{
  static const char text[] =
    "func weighted(a, b) { return f64(a) * 0.5 + f64(b) }\n"
    "func coalesce(a, b) { return a[1] ? f64(a[0]) : f64(b[0]), a[1] or b[1] }\n"
    "func is_less(a, b) { return f64(a) < f64(b) }\n";
  column_function *f[] = { define(text, "weighted", 2,
                                  draw() % 2 ? COLUMN_NULLS_PROPAGATE : COLUMN_NULLS_COMPUTED),
                           define(text, "coalesce", 2, COLUMN_NULLS_HANDLED),
                           define(text, "is_less", 2, COLUMN_NULLS_PROPAGATE) };
  column *operands[] = { take(a), take(b) }, *results[3];
  for (int k = 0; k < 3; k++) SUCCEED(columns_apply(engine, f[k], operands, &results[k]));
  column_release(operands[0]);
  column_release(operands[1]);
  exported weighted = export_result(results[0]), coalesced = export_result(results[1]),
           less = export_result(results[2]);
  for (int k = 0; k < 3; k++) column_release(results[k]); /* the exported array remains valid */
  for (int64_t i = 0; i < a->length; i++) {
    bool va = is_valid(a, i), vb = is_valid(b, i);
    double x = real(a, i), y = real(b, i);
    REQUIRE(is_valid(&weighted.p, i) == (va && vb));
    REQUIRE(!(va && vb) || real(&weighted.p, i) == x * 0.5 + y);
    REQUIRE(is_valid(&coalesced.p, i) == (va || vb));
    REQUIRE(!(va || vb) || real(&coalesced.p, i) == (va ? x : y));
    REQUIRE(is_valid(&less.p, i) == (va && vb));
    REQUIRE(!(va && vb) || integer(&less.p, i) == (x < y));
  }
  release_exported(&weighted);
  release_exported(&coalesced);
  release_exported(&less);
  for (int k = 0; k < 3; k++) column_function_release(f[k]);
}

/* A function that would fail for the undefined values of nulls is not called for nulls. */
static void check_calls(void)
{
  plain a = make_plain("l", 1000, 5, 2);
  for (int64_t i = 0; i < a.length; i++)
    if (!is_valid(&a, i)) ((int64_t *)a.values)[a.offset + i] = 7;
  column_function *f = define("func f(a) {\n  if a == 7 { raise \"seven\" }\n  return a\n}", "f", 1,
                              COLUMN_NULLS_PROPAGATE);
  column *c = take(&a), *result;
  SUCCEED(columns_apply(engine, f, &c, &result));
  column_release(c);
  column_release(result);
  column_function_release(f);
  free_plain(&a);
}

/* ---- filters ---- */

static void check_filter(const plain *a, const plain *b)
{
  column_function *positive =
    define("func positive(a) { return a > 0 }", "positive", 1, COLUMN_NULLS_PROPAGATE);
  column *columns[] = { take(a), take(b) }, *kept[2];
  SUCCEED(columns_filter(engine, positive, columns, columns, 2, kept));
  exported first = export_result(kept[0]), second = export_result(kept[1]);
  int64_t k = 0;
  for (int64_t i = 0; i < a->length; i++) {
    if (!is_valid(a, i) || !(real(a, i) > 0)) continue;
    REQUIRE(k < first.p.length && is_valid(&first.p, k) && real(&first.p, k) == real(a, i));
    REQUIRE(is_valid(&second.p, k) == is_valid(b, i));
    REQUIRE(!is_valid(b, i) || real(&second.p, k) == real(b, i));
    k++;
  }
  REQUIRE(k == first.p.length && k == second.p.length);
  release_exported(&first);
  release_exported(&second);
  for (int i = 0; i < 2; i++) {
    column_release(columns[i]);
    column_release(kept[i]);
  }
  column_function_release(positive);
}

/* ---- groups ---- */

static bool same_key(const plain *a, int64_t i, const plain *b, int64_t j)
{
  bool valid = is_valid(a, i);
  return valid == is_valid(b, j) && (!valid || real(a, i) == real(b, j));
}

/* The loops search the rows of each group again, and share no code with the library. */
static void check_groups(const plain *k0, const plain *k1, const plain *values, bool drops)
{
  column *keys[] = { take(k0), take(k1) }, *c = take(values), *results[7];
  column_aggregate aggregates[] = {
    { c, COLUMN_SUM }, { c, COLUMN_COUNT }, { c, COLUMN_MIN }, { c, COLUMN_MAX }, { c, COLUMN_MEAN }
  };
  exported e[7];
  int64_t rows = 0, used = 0;
  SUCCEED(
    columns_group(engine, keys, 2, aggregates, 5, drops ? COLUMN_DROP_NULL_KEYS : 0, results));
  for (int i = 0; i < 7; i++) e[i] = export_result(results[i]);
  for (int64_t g = 0; g < e[0].p.length; g++) {
    double sum = 0, least = INFINITY, greatest = -INFINITY;
    int64_t count = 0;
    for (int64_t i = 0; i < values->length; i++) {
      if (!same_key(k0, i, &e[0].p, g) || !same_key(k1, i, &e[1].p, g)) continue;
      rows++;
      if (!is_valid(values, i)) continue;
      double v = real(values, i);
      count++;
      sum += v;
      least = v < least ? v : least;
      greatest = v > greatest ? v : greatest;
    }
    REQUIRE(is_valid(&e[3].p, g) && integer(&e[3].p, g) == count);
    for (int i = 2; i < 7; i++) REQUIRE(i == 3 || is_valid(&e[i].p, g) == (count > 0));
    if (!count) continue;
    REQUIRE(real(&e[2].p, g) == sum && real(&e[6].p, g) == sum / (double)count);
    REQUIRE(real(&e[4].p, g) == least && real(&e[5].p, g) == greatest);
  }
  for (int64_t i = 0; i < values->length; i++)
    used += !drops || (is_valid(k0, i) && is_valid(k1, i));
  REQUIRE(rows == used); /* each row is then in exactly one group */
  for (int i = 0; i < 7; i++) {
    release_exported(&e[i]);
    column_release(results[i]);
  }
  column_release(keys[0]);
  column_release(keys[1]);
  column_release(c);
}

/* ---- ownership ---- */

/* A producer's array is released once, after the last user of its memory has been released. */
static void check_releases(void)
{
  plain a = make_plain("l", 100, 3, 4);
  int before = releases;
  column *c = take(&a);
  /* the schema is released; on a GPU, the array is released as well, because it was copied */
  REQUIRE(releases >= before + 1);
  exported e = export(c);
  column_release(c);
  for (int64_t i = 0; i < a.length; i++)
    REQUIRE(is_valid(&a, i) == is_valid(&e.p, i) && integer(&a, i) == integer(&e.p, i));
  release_exported(&e);
  REQUIRE(releases == before + 2);
  free_plain(&a);
}

/* ---- what is refused ---- */

static void refuse_array(const char *expected, const char *format,
                         void (*spoil)(struct ArrowSchema *, struct ArrowArray *))
{
  plain a = make_plain("l", 10, 0, 2);
  struct ArrowSchema schema;
  struct ArrowArray array;
  column *taken = NULL;
  produce(&a, &schema, &array);
  schema.format = format;
  if (spoil) spoil(&schema, &array);
  kjit_status status = columns_take(engine, &schema, &array, &taken);
  REQUIRE(status != KJIT_OK && !taken && !array.release && !schema.release);
  if (!strstr(columns_get_error(engine), expected)) stop(expected, __FILE__, __LINE__);
  free_plain(&a);
}

static void release_first(struct ArrowSchema *schema, struct ArrowArray *array)
{
  (void)schema;
  array->release(array);
}
static void add_dictionary(struct ArrowSchema *schema, struct ArrowArray *array)
{
  (void)array;
  schema->dictionary = schema;
}
static void shorten(struct ArrowSchema *schema, struct ArrowArray *array)
{
  (void)schema;
  array->length = -1;
}
static void lose_buffer(struct ArrowSchema *schema, struct ArrowArray *array)
{
  (void)schema;
  array->buffers[1] = NULL;
}

static void refuse_function(const char *expected, const char *text, const char *name, size_t count,
                            column_nulls nulls, column *const *operands)
{
  column_function *f = NULL;
  column *result = NULL;
  kjit_status status = columns_define(engine, text, name, count, nulls, &f);
  if (status == KJIT_OK) status = columns_apply(engine, f, operands, &result);
  REQUIRE(status != KJIT_OK && !result);
  if (!strstr(columns_get_error(engine), expected)) stop(expected, __FILE__, __LINE__);
  column_function_release(f);
}

static void check_refusals(void)
{
  refuse_array("\"u\"", "u", NULL);
  refuse_array("\"+l\"", "+l", NULL);
  refuse_array("dictionary", "i", add_dictionary);
  refuse_array("released", "l", release_first);
  refuse_array("length -1", "l", shorten);
  refuse_array("no buffer of values", "l", lose_buffer);
  plain a = make_plain("l", 10, 0, 2), b = make_plain("g", 11, 5, 2),
        dates = make_plain("tdm", 10, 0, 0);
  column *columns[] = { take(&a), take(&b), take(&dates) }, *result[2] = { NULL, NULL };
  refuse_function("operand 1 has 11 rows", "func f(a, b) { return a }", "f", 2,
                  COLUMN_NULLS_PROPAGATE, columns);
  refuse_function("f", "func f(a, b) { return a }", "f", 1, COLUMN_NULLS_PROPAGATE, columns);
  refuse_function("no column holds", "func f(a) { return c128(f64(a), 1) }", "f", 1,
                  COLUMN_NULLS_PROPAGATE, columns);
  refuse_function("has the type i32, but must be bool", "func f(a) { return a[0], 2 }", "f", 1,
                  COLUMN_NULLS_HANDLED, columns);
  refuse_function("no such row", "func f(a) {\n if a == a { raise \"no such row\" }\n return a\n}",
                  "f", 1, COLUMN_NULLS_PROPAGATE, columns + 2);
  column_function *f = define("func f(a) { return a + 1 }", "f", 1, COLUMN_NULLS_PROPAGATE);
  REQUIRE(columns_filter(engine, f, columns, columns, 1, result) == KJIT_ERROR_TYPE);
  column_aggregate of_dates = { columns[2], COLUMN_SUM }, of_longer = { columns[1], COLUMN_SUM };
  REQUIRE(columns_group(engine, columns, 1, &of_dates, 1, 0, result) == KJIT_ERROR_UNSUPPORTED);
  REQUIRE(columns_group(engine, columns, 1, &of_longer, 1, 0, result) == KJIT_ERROR_ARGUMENT);
  REQUIRE(columns_group(engine, columns, 0, NULL, 0, 0, result) == KJIT_ERROR_ARGUMENT);
  REQUIRE(!result[0]);
  column_function_release(f);
  for (int i = 0; i < 3; i++) column_release(columns[i]);
  free_plain(&a);
  free_plain(&b);
  free_plain(&dates);
}

/* ---- rounds ---- */

static void check_round(int64_t rows, const char *first, const char *second, unsigned nulls)
{
  plain a = make_plain(first, rows, (int64_t)(draw() % 20), nulls),
        b = make_plain(second, rows, (int64_t)(draw() % 20), nulls ? 3 : 0);
  plain flags = make_plain("b", rows, (int64_t)(draw() % 20), nulls);
  check_functions(&a, &b);
  check_filter(&a, &b);
  check_groups(&a, &flags, &b, draw() % 2);
  check_groups(&flags, &b, &a, draw() % 2);
  free_plain(&a);
  free_plain(&b);
  free_plain(&flags);
}

/* Returns a whole number, or prints the usage and exits. */
static int64_t read_number(const char *text, int64_t least, int64_t most)
{
  char *end;
  long long number = strtoll(text, &end, 10);
  if (*text && !*end && number >= least && number <= most) return number;
  fprintf(stderr, "columns_check: expected a number from %lld to %lld, not '%s'\n",
          (long long)least, (long long)most, text);
  exit(2);
}

int main(int argc, char **argv)
{
  const char *device = argc > 1 ? argv[1] : "cpu", *folder = argc > 2 ? argv[2] : ".";
  int64_t rows = argc > 3 ? read_number(argv[3], 16, INT32_MAX) : 3000;
  uint64_t seed = argc > 4 ? (uint64_t)read_number(argv[4], 0, INT64_MAX) : (uint64_t)time(NULL);
  if (strcmp(device, "cpu") && strcmp(device, "cuda")) {
    fprintf(stderr, "columns_check: the device: expected cpu or cuda, not '%s'\n", device);
    return 2;
  }
  state = seed;
  printf("seed %" PRIu64 "\n", seed);
  SUCCEED(columns_open(device, folder, &engine));
  check_round(rows, "c", "i", 0);
  check_round(rows - (int64_t)(draw() % 16), "l", "g", 5);
  for (int64_t few = 0; few < 10; few += 1 + (few == 2) * 5) check_round(few, "l", "g", 2);
  check_round(17, "l", "g", 1); /* all values are null */
  check_calls();
  check_releases();
  check_refusals();
  columns_close(engine);
  printf("columns on %s: right\n", device);
  return EXIT_SUCCESS;
}

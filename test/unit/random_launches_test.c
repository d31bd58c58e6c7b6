/* Random launches on a GPU: the fast path and the slow path pass the same parameters, and the
 * code's facts hold. */
#include "gpu_launches.h"

#include <kjit/code.h>

#include "launch/fast_path.h"

/* ---- random launches: the fast path and the slow path pass the same parameters, and the code
 * relies only on facts that hold ---- */

static const char random_source[] = "kernel mix(r, s, a, x, y) {\n  for i in grid_range(len(r)) { "
                                    "r[i] = a * x[i, 0] + y[0, 0]\n    s[i] = r[i] }\n}\n"
                                    /* one array is written */
                                    "kernel one(r, s, a, x, y) {\n  for i in grid_range(len(r)) { "
                                    "r[i] = a * x[i, 0] + y[0, 0] + s[0] }\n}\n";

static uint32_t random_state = 12345;
static uint32_t draw(uint32_t below)
{
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

typedef struct drawn {
  kjit_tensor tensors[4];
  int64_t shapes[4][2], strides[4][2];
  kjit_array *arrays[4]; /* kjit arrays for some of the tensors */
  kjit_arg arguments[5];
} drawn;

/* Returns an argument: a tensor of the application or a kjit array. */
static kjit_arg draw_way(kjit_context *context, drawn *d, int i, bool prefers_arrays)
{
  if (draw(8) ? !prefers_arrays : prefers_arrays) return kjit_arg_tensor(&d->tensors[i]);
  expect_ok(context, kjit_wrap_tensor(context, &d->tensors[i], &d->arrays[i]));
  return kjit_arg_array(d->arrays[i]);
}

static void release_arguments(drawn *d)
{
  for (int i = 0; i < 4; i++) kjit_release_array(d->arrays[i]);
}

/* Often keeps the previous arguments, so that the launch takes the fast path; otherwise changes a
 * property of one argument. */
static void draw_arguments(kjit_context *context, drawn *d)
{
  bool prefers_arrays = draw(2);
  memset(d->arrays, 0, sizeof d->arrays);
  for (int i = 0; i < 4; i++) {
    uint32_t rank = i < 2 ? 1 : 2, kind = draw(8);
    d->shapes[i][0] = (int64_t[]){ 16, 16, 32, 5 }[draw(4)];
    d->shapes[i][1] = (int64_t[]){ 8, 8, 3 }[draw(3)];
    d->strides[i][0] = rank == 1 ? 1 : d->shapes[i][1] + (kind == 1);
    d->strides[i][1] = 1;
    if (kind == 2 && rank == 2) d->strides[i][0] = 1, d->strides[i][1] = d->shapes[i][0];
    size_t at = (size_t)i * 512 + (draw(4) ? 0 : draw(2) ? 1 : 4); /* elements */
    /* the address of another array */
    if (draw(6) == 0) at = draw(4) * 512;
    d->tensors[i] = (kjit_tensor){ .data = data + at,
                                   .device_type = 2,
                                   .rank = (int32_t)rank,
                                   .code = 2,
                                   .bits = 32,
                                   .lanes = 1,
                                   .shape = d->shapes[i] };
    if (kind == 1 || kind == 2 || kind == 3) d->tensors[i].strides = d->strides[i];
  }
  d->arguments[0] = draw_way(context, d, 0, prefers_arrays);
  d->arguments[1] = draw_way(context, d, 1, prefers_arrays);
  d->arguments[2] = draw(4)   ? kjit_arg_f32((float)draw(100))
                    : draw(2) ? kjit_arg_f64(draw(100))
                              : kjit_arg_number(draw(100));
  d->arguments[3] = draw_way(context, d, 2, prefers_arrays);
  d->arguments[4] = draw_way(context, d, 3, prefers_arrays);
}

/* Returns whether every fact in one text, such as "aligned16(r, x) disjoint(r, x)", is also in the
 * other text. */
static bool has_fact(const char *facts, const char *name, size_t name_length, const char *operand,
                     size_t operand_length)
{
  for (const char *at = facts; (at = strstr(at, name)); at += name_length) {
    bool is_whole = (at == facts || at[-1] == ' ') &&
                    (at[name_length] == '(' || at[name_length] == ' ' || !at[name_length]);
    const char *end = is_whole && at[name_length] == '(' ? strchr(at, ')') : NULL;
    if (is_whole && !operand) return true;
    for (const char *o = at + name_length + 1; end && o < end; o++)
      if ((o[-1] == '(' || o[-1] == ' ') && !strncmp(o, operand, operand_length) &&
          (o[operand_length] == ',' || o[operand_length] == ')'))
        return true;
  }
  return false;
}

static void expect_facts_hold(const char *relied_on, const char *hold)
{
  for (const char *at = relied_on; *at; at += strspn(at, " ")) {
    char name[64];
    size_t length = strcspn(at, " (");
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    const char *operands = at[length] == '(' ? at + length + 1 : NULL,
               *end = operands ? strchr(operands, ')') : at + length;
    bool holds = true;
    if (!operands) holds = has_fact(hold, name, length, NULL, 0);
    else if (strstr(name, "aligned16"))
      for (const char *o = operands; o < end;
           o += strcspn(o, ",)") + (o[strcspn(o, ",)")] == ',' ? 2 : 1))
        holds = holds && has_fact(hold, name, length, o, strcspn(o, ",)"));
    else {
      char whole[128];
      snprintf(whole, sizeof whole, "%.*s", (int)(end + 1 - at), at);
      holds = strstr(hold, whole) != NULL;
    }
    if (!holds) print_error("`%s` relies on %s, and what holds is `%s`\n", relied_on, name, hold);
    assert_true(holds);
    at = operands ? end + 1 : end;
  }
}

static const kjit_specialization *launched_since(kjit_kernel *kernel, uint64_t *counts, size_t most)
{
  kjit_specialization *found = NULL, *one;
  for (size_t i = 0; i < most && (one = kjit_get_specialization(kernel, i)); i++) {
    uint64_t launches = kj_count_launches(one);
    if (launches != counts[i]) found = one;
    counts[i] = launches;
  }
  return found;
}

static void launch_randomly(void **state, const char *name)
{
  enum { TIMES = 3000, MOST = 4096 };
  static uint64_t counts[MOST], fresh_counts[MOST];
  char parameters[sizeof cuda.parameters];
  uint32_t direct = 0;
  kjit_kernel *kernel = kernel_of(parse(*state, random_source), name);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = gpu(*state) };
  memset(counts, 0, sizeof counts);
  for (int time = 0; time < TIMES; time++) {
    drawn d;
    draw_arguments(*state, &d);
    for (uint32_t again = draw(3) + 1; again; again--) {
      memset(cuda.parameters, 0, sizeof cuda.parameters);
      expect_ok(*state, kjit_launch(kernel, &config, d.arguments, 5));
    }
    memcpy(parameters, cuda.parameters, sizeof parameters);
    uint32_t grid = cuda.grid[0], block = cuda.block[0];
    size_t bytes = cuda.parameter_bytes;
    const kjit_specialization *ran = launched_since(kernel, counts, MOST);
    direct += ran && ran->table;
    /* compared with the first launch of an equal kernel, which takes the slow path */
    kjit_module *module = parse(*state, random_source);
    kjit_kernel *fresh = kernel_of(module, name);
    memset(cuda.parameters, 0, sizeof cuda.parameters);
    memset(fresh_counts, 0, sizeof fresh_counts);
    expect_ok(*state, kjit_launch(fresh, &config, d.arguments, 5));
    const kjit_specialization *exact = launched_since(fresh, fresh_counts, MOST);
    assert_non_null(ran);
    assert_non_null(exact);
    assert_string_equal(ran->signature, exact->signature);
    expect_facts_hold(ran->facts, exact->facts);
    assert_int_equal(grid, cuda.grid[0]);
    assert_int_equal(block, cuda.block[0]);
    if (!strcmp(ran->facts, exact->facts)) {
      assert_int_equal(bytes, cuda.parameter_bytes);
      /* the bytes between parameters are undefined */
      for (uint32_t i = 0; i < ran->code.parameter_count; i++) {
        const kj_parameter *p = &ran->code.parameters[i];
        assert_memory_equal(parameters + p->offset, cuda.parameters + p->offset, p->size_bytes);
      }
    }
    kjit_release_module(module);
    release_arguments(&d);
  }
  assert_true(direct > TIMES / 10); /* many of them took the fast path */
}

static void test_random_launches(void **state)
{
  launch_randomly(state, "mix");
  launch_randomly(state, "one");
}

/* Arrays that look like those of earlier launches but are on another device, or were lost by a
 * reset, are rejected. */
static void test_arrays_elsewhere(void **state)
{
  kjit_device *here = gpu(*state), *there;
  kjit_array *array, *other;
  kjit_kernel *kernel = kernel_of(parse(*state, source), "fill");
  kjit_launch_config config = { .size_bytes = sizeof config, .device = here };
  int64_t extent = 64;
  expect_ok(*state, kjit_get_device(*state, KJIT_DEVICE_CUDA, 1, &there));
  expect_ok(*state, kjit_create_array(here, KJIT_F32, &extent, 1, &array));
  expect_ok(*state, kjit_create_array(there, KJIT_F32, &extent, 1, &other));
  kjit_arg argument = kjit_arg_array(array), elsewhere = kjit_arg_array(other),
           nothing = kjit_arg_array(NULL);
  for (int i = 0; i < 4; i++) expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_non_null(kjit_get_specialization(kernel, 0)->table);
  int launches = cuda.launches;
  assert_int_equal(kjit_launch(kernel, &config, &elsewhere, 1), KJIT_ERROR_ARGUMENT);
  assert_int_equal(kjit_launch(kernel, &config, &nothing, 1), KJIT_ERROR_ARGUMENT);
  kjit_release_array(other);
  kjit_trim_memory(there, 0); /* the fake driver's reset takes the memory of all devices */
  expect_ok(*state, kjit_reset_device(here));
  assert_int_equal(kjit_launch(kernel, &config, &argument, 1), KJIT_ERROR_DEVICE);
  kjit_release_array(array);
  expect_ok(*state, kjit_create_array(here, KJIT_F32, &extent, 1, &array));
  argument = kjit_arg_array(array);
  assert_int_equal(cuda.launches, launches);
  for (int i = 0; i < 4; i++) expect_ok(*state, kjit_launch(kernel, &config, &argument, 1));
  assert_int_equal(cuda.launches, launches + 4);
  kjit_release_array(array);
}

/* Tests the checks of the random launches. */
static void test_facts_of_random_launches(void **state)
{
  (void)state;
  assert_true(has_fact("aligned16(r, x) offsets32", "aligned16", 9, "x", 1));
  assert_false(has_fact("aligned16(r, x) offsets32", "aligned16", 9, "y", 1));
  assert_false(has_fact("rows_aligned16(y) offsets32", "aligned16", 9, "y", 1));
  expect_facts_hold("aligned16(r, x) disjoint(r, x)",
                    "aligned16(r, s, x) offsets32 disjoint(r, s) disjoint(r, x)");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
    TEST(test_facts_of_random_launches),
    TEST(test_random_launches),
    cmocka_unit_test_setup_teardown(test_arrays_elsewhere, set_up_two, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

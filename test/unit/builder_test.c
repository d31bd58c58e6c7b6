/* Tests of the builder: the text of built modules, and names and literals that the text spells in
 * another way. */
#include "builder_fixture.h"

#include <math.h>

static char *text_of(kjit_module *module)
{
  char *text = NULL;
  assert_int_equal(kjit_copy_module_text(module, &text), KJIT_OK);
  return text;
}

/* Checks that the built module prints as expected, and that the parsed text prints as the same text
 * again. */
static void expect_text(fixture *f, const char *expected)
{
  kjit_module *built = NULL, *parsed = NULL;
  if (kjit_finish_builder(f->b, &built) != KJIT_OK)
    fail_msg("%s", kjit_copy_diagnostics_text(f->context));
  char *text = text_of(built);
  assert_string_equal(text, expected);
  if (kjit_parse_module(f->context, "printed", text, strlen(text), &parsed) != KJIT_OK)
    fail_msg("%s", kjit_copy_diagnostics_text(f->context));
  char *again = text_of(parsed);
  assert_string_equal(again, text);
  kjit_free(f->context, text);
  kjit_free(f->context, again);
  kjit_release_module(built);
  kjit_release_module(parsed);
}

static kjit_node extent(kjit_builder *b, kjit_node array)
{
  return kjit_build_call(b, "len", &array, 1);
}

static void build_axpy(kjit_builder *b)
{
  kjit_build_begin_kernel(b, "axpy");
  kjit_node r = kjit_build_parameter(b, "r", KJIT_ANY), a = kjit_build_parameter(b, "a", KJIT_ANY),
            x = kjit_build_parameter(b, "x", KJIT_ANY), i;
  kjit_node n = extent(b, r);
  kjit_build_for_grid(b, &n, 1, &i);
  kjit_build_assign(b, at(b, r, i), KJIT_OP_STORE,
                    kjit_build_binary(b, KJIT_OP_MUL, a, at(b, x, i)));
  kjit_build_end(b);
  kjit_build_end(b);
}

static void axpy(void **state)
{
  fixture *f = *state;
  build_axpy(f->b);
  expect_text(
    f, "kernel axpy(r, a, x) {\n  for i3 in grid_range(len(r)) {\n    r[i3] = a * x[i3]\n  }\n}\n");
  build_axpy(f->b); /* the builder is empty again */
  expect_text(
    f, "kernel axpy(r, a, x) {\n  for i3 in grid_range(len(r)) {\n    r[i3] = a * x[i3]\n  }\n}\n");
}

/* Tuples, also empty ones, and loops over their items. */
static void loops_through_tuples(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY), items[2] = { x };
  items[1] = kjit_build_tuple(b, NULL, 0);
  kjit_node v = kjit_build_for_items(b, "v", kjit_build_tuple(b, items, 2));
  kjit_build_if(b, kjit_build_call(b, "is_tuple", &v, 1));
  kjit_build_continue(b);
  kjit_build_end(b);
  kjit_node places = kjit_build_for_range(b, "at", 0, kjit_build_select_field(b, v, "shape"), 0);
  kjit_build_assign(b, kjit_build_index(b, v, &places, 1), KJIT_OP_STORE, kjit_build_integer(b, 3));
  kjit_build_end(b);
  kjit_build_end(b);
  kjit_build_for_range(b, "i", 0, kjit_build_integer(b, 2), 0);
  kjit_build_attribute(b, "static", NULL, 0);
  kjit_build_end(b);
  kjit_build_end(b);
  expect_text(f, "kernel k(x) {\n"
                 "  for v in (x, ()) {\n"
                 "    if is_tuple(v) {\n"
                 "      continue\n"
                 "    }\n"
                 "    for at in range(v.shape) {\n"
                 "      v[at] = 3\n"
                 "    }\n"
                 "  }\n"
                 "  for i in range(2) @static {\n"
                 "  }\n"
                 "}\n");
}

/* An attribute whose value is a func. */
static void attribute_of_func(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_function(b, "nothing", KJIT_ANY);
  (void)kjit_build_parameter(b, "like", KJIT_ANY);
  kjit_build_return(b, kjit_build_integer(b, 0));
  kjit_build_end(b);
  kjit_build_begin_function(b, "plus", KJIT_ANY);
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY), y = kjit_build_parameter(b, "y", KJIT_ANY);
  kjit_node nothing = kjit_build_function_value(b, "nothing");
  kjit_build_attribute(b, "commutes", NULL, 0);
  kjit_build_attribute(b, "identity", &nothing, 1);
  kjit_build_return(b, kjit_build_binary(b, KJIT_OP_ADD, x, y));
  kjit_build_end(b);
  expect_text(f, "func nothing(like) {\n"
                 "  return 0\n"
                 "}\n\n"
                 "func plus(x, y) @commutes @identity(nothing) {\n"
                 "  return x + y\n"
                 "}\n");
}

/* The nodes of a kernel that its later statements use. */
typedef struct {
  kjit_node tile, own, acc, rows;
} built_values;

/* Begins the kernel k: its parameters, its attributes and declarations of every kind. */
static built_values build_declarations(kjit_builder *b, kjit_context *context)
{
  built_values values;
  kjit_build_begin_kernel(b, "k");
  kjit_node x =
    kjit_build_parameter(b, "x", kjit_get_array_type(context, KJIT_F32, 2, KJIT_LAYOUT_C, 0));
  kjit_node op = kjit_build_parameter(b, "op", KJIT_FUNC);
  kjit_node n = kjit_build_const_parameter(b, "N", kjit_build_integer(b, 16));
  kjit_node sixteen[2] = { kjit_build_integer(b, 16),
                           kjit_build_binary(b, KJIT_OP_ADD, n, kjit_build_integer(b, 1)) };
  kjit_node block = kjit_build_integer(b, 64);
  (void)op;
  kjit_build_attribute(b, "block", &block, 1);
  values.tile = kjit_build_shared(b, "tile", KJIT_F32, sixteen, 2);
  kjit_build_shared(b, "rest", KJIT_U8, NULL, 1);
  kjit_node four = kjit_build_integer(b, 4);
  values.own = kjit_build_local(b, "own", KJIT_I32, &four, 1);
  values.acc = kjit_build_var(b, "acc", KJIT_F64, kjit_build_float(b, 0.5));
  kjit_node late = kjit_build_var(b, "late", KJIT_ANY, 0);
  kjit_build_var(b, "held", kjit_get_array_type(context, KJIT_F32, 1, KJIT_LAYOUT_C, 1), 0);
  kjit_build_assign(b, late, KJIT_OP_STORE, values.acc);
  values.rows =
    kjit_build_let(b, "rows",
                   at(b, kjit_build_select_field(b, x, "shape"), kjit_build_integer(b, 0)));
  return values;
}

/* Adds a loop over a range that holds a branch with an else branch, and a while loop. */
static void build_loops(kjit_builder *b, const built_values *values)
{
  kjit_node i = kjit_build_for_range(b, "i", 0, values->rows, kjit_build_integer(b, 2));
  kjit_build_attribute(b, "unroll", NULL, 0);
  kjit_build_if(b, kjit_build_binary(b, KJIT_OP_LT, i, kjit_build_call(b, "threadIdx.x", NULL, 0)));
  kjit_build_continue(b);
  kjit_build_else(b);
  kjit_build_if(b, kjit_build_unary(b, KJIT_OP_NOT, kjit_build_bool(b, 1)));
  kjit_build_break(b);
  kjit_build_end(b);
  kjit_build_end(b);
  kjit_build_assign(b, values->acc, KJIT_OP_ADD,
                    kjit_build_conditional(b, kjit_build_bool(b, 0),
                                           kjit_build_cast(b, KJIT_F32, at(b, values->own, i)),
                                           kjit_build_integer(b, -3)));
  kjit_build_end(b);
  kjit_build_while(b, kjit_build_binary(b, KJIT_OP_GT, values->acc, kjit_build_integer(b, 0)));
  kjit_build_assign(
    b, values->acc, KJIT_OP_STORE,
    kjit_build_call(b, "op",
                    (kjit_node[]){ values->acc, kjit_build_call(b, "later", &values->acc, 1) }, 2));
  kjit_build_end(b);
}

/* Adds a loop whose elements the threads of a block divide among them, and ends the kernel. */
static void build_end_of_kernel(kjit_builder *b, const built_values *values)
{
  kjit_node variables[2];
  kjit_build_for_block(b, (kjit_node[]){ values->rows, kjit_build_integer(b, 3) }, 2, variables);
  kjit_build_evaluate(b, kjit_build_call(b, "atomic_add",
                                         (kjit_node[]){
                                           kjit_build_index(b, values->tile, variables, 2),
                                           kjit_build_integer(b, 1) },
                                         2));
  kjit_build_end(b);
  kjit_build_evaluate(b, kjit_build_call(b, "syncthreads", NULL, 0));
  kjit_build_return(b, 0);
  kjit_build_end(b);
}

static void build_later(kjit_builder *b)
{
  kjit_build_begin_function(b, "later", KJIT_ANY);
  kjit_node v = kjit_build_parameter(b, "v", KJIT_ANY);
  kjit_build_return(b, kjit_build_binary(b, KJIT_OP_POW, kjit_build_unary(b, KJIT_OP_NEG, v),
                                         kjit_build_integer(b, 2)));
  kjit_build_end(b);
}

static void every_statement(void **state)
{
  fixture *f = *state;
  const built_values values = build_declarations(f->b, f->context);
  build_loops(f->b, &values);
  build_end_of_kernel(f->b, &values);
  build_later(f->b);
  expect_text(f, "kernel k(x: f32[:, :] C, op: func, const N = 16) @block(64) {\n"
                 "  shared tile: f32[16, N + 1]\n"
                 "  shared rest: u8[]\n"
                 "  local own: i32[4]\n"
                 "  var acc: f64 = 0.5\n"
                 "  var late\n"
                 "  var held: const f32[:] C\n"
                 "  late = acc\n"
                 "  let rows = x.shape[0]\n"
                 "  for i in range(0, rows, 2) @unroll {\n"
                 "    if i < threadIdx.x {\n"
                 "      continue\n"
                 "    } else if not true {\n"
                 "      break\n"
                 "    }\n"
                 "    acc += false ? f32(own[i]) : -3\n"
                 "  }\n"
                 "  while acc > 0 {\n"
                 "    acc = op(acc, later(acc))\n"
                 "  }\n"
                 "  for i11, i12 in block_range(rows, 3) {\n"
                 "    atomic_add(tile[i11, i12], 1)\n"
                 "  }\n"
                 "  syncthreads()\n"
                 "  return\n"
                 "}\n\n"
                 "func later(v) {\n"
                 "  return (-v) ** 2\n"
                 "}\n");
}

static void slices_make_views(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY), n = kjit_build_parameter(b, "n", KJIT_ANY);
  kjit_node slices[] = { kjit_build_slice(b, kjit_build_integer(b, 1), n, 0),
                         kjit_build_slice(b, 0, kjit_build_integer(b, -1),
                                          kjit_build_integer(b, 2)),
                         kjit_build_slice(b, 0, 0, 0) };
  kjit_node part =
    kjit_build_let(b, "part", kjit_build_index(b, kjit_build_select_field(b, x, "T"), slices, 3));
  kjit_node zeros[] = { kjit_build_integer(b, 0), kjit_build_integer(b, 0),
                        kjit_build_integer(b, 0) };
  kjit_build_assign(b, kjit_build_index(b, kjit_build_call(b, "transpose", &part, 1), zeros, 3),
                    KJIT_OP_STORE, n);
  kjit_build_end(b);
  expect_text(f, "kernel k(x, n) {\n"
                 "  let part = x.T[1:n, :-1:2, :]\n"
                 "  transpose(part)[0, 0, 0] = n\n"
                 "}\n");
}

/* Parameters that take types, one of them with the name of a type, and types of other names. */
static void types_are_arguments(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_function(b, "mean", KJIT_ANY);
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY), t = kjit_build_parameter(b, "T", KJIT_TYPE),
            u = kjit_build_parameter(b, "i32", KJIT_TYPE);
  kjit_node v = kjit_build_parameter(b, "v", kjit_build_type_of(b, t)),
            n = kjit_build_parameter(b, "n", KJIT_I32);
  kjit_node four = kjit_build_integer(b, 4), zero = kjit_build_integer(b, 0);
  kjit_node own = kjit_build_local(b, "own", kjit_build_type_of(b, t), &four, 1);
  kjit_node s = kjit_build_var(b, "s", kjit_build_type_of(b, u), kjit_build_call(b, "zero", &u, 1));
  kjit_node first = kjit_build_let(b, "first", kjit_build_index(b, x, &zero, 1));
  kjit_build_var(b, "w", kjit_build_type_of(b, x), first);
  kjit_build_assign(b, at(b, own, kjit_build_integer(b, 1)), KJIT_OP_STORE,
                    kjit_build_cast(b, kjit_build_type_of(b, t),
                                    kjit_build_binary(b, KJIT_OP_ADD, n, first)));
  kjit_build_assign(b, s, KJIT_OP_ADD, kjit_build_call(b, "T", &v, 1));
  kjit_node same = kjit_build_binary(b, KJIT_OP_EQ, t, u);
  kjit_build_return(b, kjit_build_conditional(b, same, s, kjit_build_cast(b, KJIT_I32, v)));
  kjit_build_end(b);
  kjit_build_begin_kernel(b, "k");
  kjit_node r = kjit_build_parameter(b, "r", KJIT_ANY);
  kjit_node arguments[] = { r, kjit_build_function_value(b, "f32"),
                            kjit_build_call(b, "dtype", &r, 1), kjit_build_integer(b, 2),
                            kjit_build_integer(b, 3) };
  kjit_build_assign(b, at(b, r, kjit_build_integer(b, 0)), KJIT_OP_STORE,
                    kjit_build_call(b, "mean", arguments, 5));
  kjit_build_end(b);
  expect_text(f, "func mean(x, T: type, i32_2: type, v: T, n: i32) {\n"
                 "  local own: T[4]\n"
                 "  var s: i32_2 = zero(i32_2)\n"
                 "  let first = x[0]\n"
                 "  var w: dtype(x) = first\n"
                 "  own[1] = T(n + first)\n"
                 "  s += T(v)\n"
                 "  return T == i32_2 ? s : i32(v)\n"
                 "}\n\n"
                 "kernel k(r) {\n"
                 "  r[0] = mean(r, f32, dtype(r), 2, 3)\n"
                 "}\n");
}

static kjit_node add_literal(kjit_builder *b, kjit_node x, kjit_node literal)
{
  kjit_build_assign(b, at(b, x, kjit_build_integer(b, 0)), KJIT_OP_STORE, literal);
  return 0;
}

static void literals(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY);
  add_literal(b, x, kjit_build_integer(b, INT64_MIN));
  add_literal(b, x, kjit_build_float(b, -0.1));
  add_literal(b, x, kjit_build_float(b, 1e300));
  add_literal(b, x, kjit_build_float(b, -INFINITY));
  add_literal(b, x, kjit_build_float(b, NAN));
  add_literal(b, x, kjit_build_value(b, KJIT_I8, &(int8_t){ -128 }));
  add_literal(b, x, kjit_build_value(b, KJIT_I64, &(int64_t){ INT64_MIN }));
  add_literal(b, x, kjit_build_value(b, KJIT_U64, &(uint64_t){ UINT64_MAX }));
  add_literal(b, x, kjit_build_value(b, KJIT_F32, &(float){ 0.1f }));
  add_literal(b, x, kjit_build_value(b, KJIT_F64, &(double){ -0.0 }));
  add_literal(b, x, kjit_build_value(b, KJIT_F16, &(uint16_t){ 0x3c01 }));
  add_literal(b, x, kjit_build_value(b, KJIT_F32, &(float){ INFINITY }));
  add_literal(b, x, kjit_build_value(b, KJIT_BOOL, &(uint8_t){ 1 }));
  kjit_build_end(b);
  expect_text(f, "kernel k(x) {\n"
                 "  x[0] = -9223372036854775808\n"
                 "  x[0] = -0.1\n"
                 "  x[0] = 1e+300\n"
                 "  x[0] = -inf\n"
                 "  x[0] = nan\n"
                 "  x[0] = -128i8\n"
                 "  x[0] = -9223372036854775808i64\n"
                 "  x[0] = 18446744073709551615u64\n"
                 "  x[0] = 0.1f32\n"
                 "  x[0] = -0.0f64\n"
                 "  x[0] = 1.001f16\n"
                 "  x[0] = f32(inf)\n"
                 "  x[0] = true\n"
                 "}\n");
}

static void constants(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_node table = kjit_build_constant(b, "my table", KJIT_F32, (float[]){ 1, -2.5f, 0.1f, NAN },
                                        (int64_t[]){ 2, 2 }, 2);
  kjit_node again = kjit_build_constant(b, "my table", KJIT_I8, (int8_t[]){ -128 }, NULL, 0);
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "my_table", KJIT_ANY);
  kjit_node zeros[2] = { kjit_build_integer(b, 0), kjit_build_integer(b, 0) };
  kjit_build_assign(b, at(b, x, kjit_build_integer(b, 0)), KJIT_OP_STORE,
                    kjit_build_binary(b, KJIT_OP_ADD, kjit_build_index(b, table, zeros, 2), again));
  kjit_build_end(b);
  expect_text(f, "const my_table_2: f32[2, 2] = { { 1.0, -2.5 }, { 0.1, nan } }\n"
                 "const my_table_3: i8 = -128\n\n"
                 "kernel k(my_table) {\n"
                 "  my_table[0] = my_table_2[0, 0] + my_table_3\n"
                 "}\n");
}

static void tuple_constants(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_node n = kjit_build_constant_value(b, "n", KJIT_I32, kjit_build_integer(b, 4));
  kjit_node items[] = { kjit_build_binary(b, KJIT_OP_MUL, n, kjit_build_integer(b, 2)),
                        kjit_build_float(b, 2.5) };
  kjit_node pair = kjit_build_constant_value(b, "pair", KJIT_ANY, kjit_build_tuple(b, items, 2));
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY);
  kjit_build_assign(b, at(b, x, kjit_build_integer(b, 0)), KJIT_OP_STORE,
                    at(b, pair, kjit_build_integer(b, 1)));
  kjit_build_end(b);
  expect_text(f, "const n: i32 = 4\n"
                 "const pair = (n * 2, 2.5)\n\n"
                 "kernel k(x) {\n"
                 "  x[0] = pair[1]\n"
                 "}\n");
}

/* Complex numbers have no literals, so they are built from parts. A name that is also the name of a
 * vector type is renamed. */
static void parts(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_type vector;
  assert_int_equal(kjit_parse_type(f->context, "f32x2", &vector), KJIT_OK);
  kjit_node table =
    kjit_build_constant(b, "C", KJIT_C64, (float[]){ 1, -2.5f, INFINITY, 0 }, (int64_t[]){ 2 }, 1);
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY),
            own = kjit_build_let(b, "f32x2", kjit_build_integer(b, 1));
  kjit_node sum = kjit_build_binary(b, KJIT_OP_ADD, at(b, table, kjit_build_integer(b, 0)),
                                    kjit_build_value(b, KJIT_C128, (double[]){ 0.5, -1 }));
  kjit_build_assign(
    b, at(b, x, kjit_build_integer(b, 0)), KJIT_OP_STORE,
    kjit_build_binary(
      b, KJIT_OP_MUL, sum,
      kjit_build_select_field(
        b, kjit_build_construct(b, vector, (kjit_node[]){ own, kjit_build_integer(b, 0) }, 2),
        "y")));
  kjit_build_end(b);
  expect_text(f, "const C: c64[2] = { c64(1.0, -2.5), c64(inf, 0.0) }\n\n"
                 "kernel k(x) {\n"
                 "  let f32x2_2 = 1\n"
                 "  x[0] = (C[0] + c128(0.5, -1.0)) * f32x2(f32x2_2, 0).y\n"
                 "}\n");
}

/* A name in the text must not hide the declaration that the tree refers to. */
static void renaming(void **state)
{
  fixture *f = *state;
  kjit_builder *b = f->b;
  kjit_build_begin_function(b, "f", KJIT_ANY);
  kjit_build_return(b, kjit_build_parameter(b, "if", KJIT_ANY));
  kjit_build_end(b);
  kjit_build_begin_kernel(b, "k");
  kjit_node x = kjit_build_parameter(b, "x", KJIT_ANY);
  kjit_node first = kjit_build_let(b, "f", kjit_build_integer(b, 1));
  kjit_node second = kjit_build_let(b, "f", kjit_build_call(b, "f", &first, 1));
  kjit_node third = kjit_build_let(b, "sqrt", kjit_build_call(b, "sqrt", &second, 1));
  kjit_build_if(b, kjit_build_bool(b, 1));
  kjit_node inner = kjit_build_let(b, "f", third);
  kjit_build_assign(b, at(b, x, inner), KJIT_OP_STORE,
                    kjit_build_binary(b, KJIT_OP_ADD, first,
                                      kjit_build_call(b, "sqrt", &second, 1)));
  kjit_build_end(b);
  kjit_build_if(b, kjit_build_bool(b, 1));
  kjit_build_let(b, "y", first);
  kjit_build_end(b);
  kjit_build_if(b, kjit_build_bool(b, 1));
  kjit_build_let(b, "y", first); /* another block: nothing to rename */
  kjit_build_end(b);
  kjit_build_end(b);
  expect_text(f, "func f(if_) {\n"
                 "  return if_\n"
                 "}\n\n"
                 "kernel k(x) {\n"
                 "  let f_2 = 1\n"
                 "  let f = f(f_2)\n"
                 "  let sqrt_2 = sqrt(f)\n"
                 "  if true {\n"
                 "    let f_3 = sqrt_2\n"
                 "    x[f_3] = f_2 + sqrt(f)\n"
                 "  }\n"
                 "  if true {\n"
                 "    let y = f_2\n"
                 "  }\n"
                 "  if true {\n"
                 "    let y = f_2\n"
                 "  }\n"
                 "}\n");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(axpy, set_up, tear_down),
    cmocka_unit_test_setup_teardown(loops_through_tuples, set_up, tear_down),
    cmocka_unit_test_setup_teardown(attribute_of_func, set_up, tear_down),
    cmocka_unit_test_setup_teardown(every_statement, set_up, tear_down),
    cmocka_unit_test_setup_teardown(literals, set_up, tear_down),
    cmocka_unit_test_setup_teardown(constants, set_up, tear_down),
    cmocka_unit_test_setup_teardown(tuple_constants, set_up, tear_down),
    cmocka_unit_test_setup_teardown(parts, set_up, tear_down),
    cmocka_unit_test_setup_teardown(renaming, set_up, tear_down),
    cmocka_unit_test_setup_teardown(slices_make_views, set_up, tear_down),
    cmocka_unit_test_setup_teardown(types_are_arguments, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The declarations that an algorithm's text gets from kjit's library modules. Each func has the
 * same meaning and location as if the whole module were parsed, and declarations that the text does
 * not reach are missing. A partial module gets only the headers of the named declarations, and a
 * launch with code from the disk cache parses nothing else. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "built_compiler.h"
#include "cache_folder.h"
#include "ir/context.h"
#include "ir/module.h"
#include "library/library.h"

static kjit_context *context;

static int set_up(void **state)
{
  (void)state;
  return kjit_create_context(NULL, &context) == KJIT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
  (void)state;
  kjit_destroy_context(context);
  return 0;
}

static kjit_module *parse(const char *name, const char *text)
{
  kjit_module *module;
  if (kjit_parse_module_as(context, KJIT_TRUST_HOST, name, text, strlen(text), &module) != KJIT_OK)
    fail_msg("%s: %s", text, kjit_get_diagnostic(context, 0)->message);
  return module;
}

static kjit_module *parse_by(const char *text, bool is_partial)
{
  kjit_module *module;
  if (ki_parse_algorithm(context, text, strlen(text), NULL, 0, is_partial, &module) != KJIT_OK)
    fail_msg("%s: %s", text, kjit_get_diagnostic(context, 0)->message);
  return module;
}

static kjit_module *parse_algorithm(const char *text) { return parse_by(text, false); }

static kjit_module *complete(kjit_module *partial)
{
  kjit_module *whole;
  kj_diagnostics diagnostics = { 0 };
  assert_int_equal(ki_get_whole(partial, &diagnostics, &whole), KJIT_OK);
  return whole;
}

/* Prints a func that names another one, and the declarations that both reach. */
static char *print_meaning(const kjit_module *module)
{
  const ki_decl *root = ki_find_decl(module, "root");
  kj_buffer buffer = { 0 };
  ki_print_reachable(module, &root, 1, &buffer);
  return kj_take_text(&buffer);
}

static void expect_place(const kjit_module *part, const kjit_module *whole, const ki_decl *decl)
{
  const ki_decl *found = ki_find_decl(part, decl->name);
  assert_non_null(found);
  assert_int_equal(found->location.line, decl->location.line);
  assert_int_equal(found->location.column, decl->location.column);
  assert_string_equal(part->sources.items[found->location.file].name,
                      whole->sources.items[decl->location.file].name);
}

static void expect_equal_headers(const ki_decl *part, const ki_decl *whole)
{
  const ki_decls *params = &part->function->params;
  assert_int_equal(params->count, whole->function->params.count);
  for (size_t i = 0; i < params->count; i++) {
    const ki_decl *a = params->items[i], *b = whole->function->params.items[i];
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->is_const, b->is_const);
    assert_int_equal(a->is_func, b->is_func);
    assert_int_equal(!a->value, !b->value);
    assert_int_equal(!a->type_expr, !b->type_expr);
  }
  assert_int_equal(part->function->attributes.count, whole->function->attributes.count);
  assert_true(part->function->is_header
                ? part->function->body.count == 0
                : part->function->body.count == whole->function->body.count);
}

/* Parses the same text as a partial module and completes it. */
static void expect_partial(const char *text, const char *name)
{
  kjit_module *partial = parse_by(text, true), *whole = complete(partial);
  assert_ptr_equal(complete(partial), whole);
  assert_ptr_equal(complete(whole), whole);
  assert_true(partial->decls.count <= whole->decls.count);
  assert_true(ki_parse_time(partial) >= whole->parse_time_ns);
  assert_int_equal(partial->sources.count, whole->sources.count);
  for (size_t i = 0; i < partial->sources.count; i++)
    assert_string_equal(partial->sources.items[i].name, whole->sources.items[i].name);
  for (size_t i = 0; i < partial->decls.count; i++) {
    const ki_decl *decl = partial->decls.items[i];
    expect_place(whole, partial, decl);
    if (decl->function) expect_equal_headers(decl, ki_find_decl(whole, decl->name));
  }
  assert_non_null(ki_find_decl(partial, name));
  assert_true(partial->has_tensor_copies >= whole->has_tensor_copies);
  kjit_release_module(partial);
}

static void expect_meaning(const kj_library_source *source, const kjit_module *all,
                           const ki_decl *decl)
{
  char *text;
  assert_true(asprintf(&text,
                       "import \"%s\"\nfunc take(f: func) { return 0 }\n"
                       "func root() { return take(%s) }\n",
                       source->name, decl->name) > 0);
  kjit_module *whole = parse("whole", text), *part = parse_algorithm(text);
  char *expected = print_meaning(whole), *printed = print_meaning(part);
  assert_string_equal(printed, expected);
  assert_true(part->decls.count <= whole->decls.count);
  expect_place(part, all, decl);
  expect_partial(text, decl->name);
  free(printed);
  free(expected);
  free(text);
  kjit_release_module(part);
  kjit_release_module(whole);
}

static void each_func_means_the_same(void **state)
{
  (void)state;
  size_t count = 0;
  for (const kj_library_source *source = kj_library; source->name; source++) {
    char *text;
    assert_true(asprintf(&text, "import \"%s\"\n", source->name) > 0);
    kjit_module *all = parse("all", text);
    for (size_t i = 0; i < all->decls.count; i++) {
      const ki_decl *decl = all->decls.items[i];
      bool is_own =
        strlen(all->sources.items[decl->location.file].name) == strlen(source->name) + 2 &&
        strstr(all->sources.items[decl->location.file].name, source->name);
      if (decl->kind != KJ_DECL_FUNCTION || !is_own) continue;
      expect_meaning(source, all, decl);
      count++;
    }
    free(text);
    kjit_release_module(all);
  }
  assert_true(count > 400);
}

static void what_is_not_named_is_left_out(void **state)
{
  (void)state;
  kjit_module *part =
    parse_algorithm("import \"block\"\n# block_scan\nfunc root() { print(\"block_scan\") }\n");
  assert_int_equal(part->decls.count, 1);
  assert_true(part->sources.count > 1);
  kjit_release_module(part);
}

/* Texts of the application are never treated as texts of kjit, even if they have the same names.
 * Their imports are whole modules, and a source called `<block>` is not the module "block". */
static void texts_of_that_name(void **state)
{
  (void)state;
  const char *text = "import \"block\"\nimport \"no-such-file.kir\"\nfunc root() { return 1 }\n";
  kjit_module *module;
  assert_int_equal(kjit_parse_module_as(context, KJIT_TRUST_HOST, "<algorithm>", text, strlen(text),
                                        &module),
                   KJIT_ERROR_IO);
  assert_non_null(strstr(kjit_get_diagnostic(context, 0)->message, "no-such-file.kir"));
  static const kjit_trust trusts[] = { KJIT_TRUST_HOST, KJIT_TRUST_GUEST };
  static const char *const names[] = { "<algorithm>", "<block>", "<warp>" };
  text = "import \"block\"\nfunc root() { return 1 }\n";
  for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++) {
    assert_int_equal(kjit_parse_module_as(context, trusts[i % 2], names[i / 2], text, strlen(text),
                                          &module),
                     KJIT_OK);
    assert_non_null(ki_find_decl(module, "block_scan"));
    assert_false(module->sources.items[0].is_algorithm);
    assert_null(module->sources.items[0].library);
    kjit_release_module(module);
  }
}

/* kjit knows which arrays a kernel writes without parsing the bodies of library funcs, both for
 * arrays that the text's own funcs get and for arrays that are passed directly. */
static void partial_modules_know_what_is_written(void **state)
{
  (void)state;
  kjit_module *module = parse_by(
    "import \"operators\"\nimport \"sort\"\nimport \"reduce\"\n"
    "func x_at(i, x) @inline { return x[i] }\n"
    "func r_put(i, v, r) @inline { r[i] = v }\n"
    "kernel run(x: const dtype(x)[:], y, r, work, done, unused, const T) @block(T) {\n"
    "  reduce_all(bind_back(x_at, x), bind_back(r_put, r), operator_argmin, 1, work, done,\n"
    "             true, T, 1, 1)\n"
    "  reduce_all(bind_back(sort_item, y), bind_back(sort_put, r), operator_add, 1, work, done,\n"
    "             true, T, 1, 1)\n"
    "}\n",
    true);
  static const bool expected_read[] = { true, true, true, true, true, false },
                    expected_written[] = { false, false, true, true, true, false };
  bool read[7], written[7];
  const ki_decl *kernel = ki_find_decl(module, "run"), *reduce = ki_find_decl(module, "reduce_all");
  assert_true(reduce->function->is_header);
  assert_false(ki_find_decl(module, "operator_argmin")->function->is_header);
  assert_null(ki_find_decl(module, "reduce_piece"));
  ki_find_accesses(module, kernel->function, read, written);
  for (size_t i = 0; i < 6; i++) {
    assert_int_equal(read[i], expected_read[i]);
    assert_int_equal(written[i], expected_written[i]);
  }
  assert_false(module->has_tensor_copies || module->partial->has_grid_ranges == false);
  kjit_release_module(module);
  module = parse_by("import \"product_tensor\"\nkernel run(x) @block(32) { }\n", true);
  assert_true(module->has_tensor_copies);
  kjit_release_module(module);
}

/* ---- launches ---- */

static size_t count_modules(bool is_partial)
{
  size_t count = 0;
  for (const kjit_module *module = context->modules; module; module = module->next)
    count += module->sources.items[0].is_algorithm && !module->is_linked &&
             (module->partial != NULL) == is_partial;
  return count;
}

/* Reduces with an operator of the library, and with a func of the application. */
static void reduce(bool is_known)
{
  static float values[] = { 3, 1, 2 };
  float sum = 0;
  const int64_t counts[] = { 3, 1 };
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = folder,
                         .compiler_path = find_built_compiler() };
  assert_int_equal(kjit_create_context(&config, &context), KJIT_OK);
  kjit_module *module = parse("operator", "func f(a, b) { return a * b + 1f32 }");
  kjit_function *f;
  assert_int_equal(kjit_get_function(module, "f", &f), KJIT_OK);
  const kjit_tensor x = { .data = values,
                          .device_type = 1,
                          .rank = 1,
                          .code = 2,
                          .bits = 32,
                          .lanes = 1,
                          .shape = (int64_t *)&counts[0] },
                    r = { .data = &sum,
                          .device_type = 1,
                          .rank = 1,
                          .code = 2,
                          .bits = 32,
                          .lanes = 1,
                          .shape = (int64_t *)&counts[1] };
  kjit_operand operands[] = { { .argument = kjit_arg_tensor(&r) },
                              { .argument = kjit_arg_tensor(&x) } };
  kjit_operator operators[] = { kjit_operator_named("add"), kjit_operator_function(f) };
  static const float expected[] = { 6, 9 };
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  assert_int_equal(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &options.device), KJIT_OK);
  for (size_t i = 0; i < 2; i++) {
    if (kjit_reduce(context, &operands[0], &operands[1], &operators[i], &options) != KJIT_OK)
      fail_msg("%s", kjit_get_diagnostic(context, 0)->message);
    assert_true(sum == expected[i]);
  }
  assert_int_equal(count_modules(true), 2);
  assert_int_equal(count_modules(false), is_known ? 0 : 2);
  kjit_destroy_context(context);
}

static void code_from_the_disk_needs_no_bodies(void **state)
{
  (void)state;
  kjit_context *own = context;
  reduce(false);
  if (!KJ_HAS_ASSERTIONS) reduce(true); /* builds with assertions compile hits a second time */
  context = own;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_func_means_the_same),
    cmocka_unit_test(what_is_not_named_is_left_out),
    cmocka_unit_test(texts_of_that_name),
    cmocka_unit_test(partial_modules_know_what_is_written),
    cmocka_unit_test_setup_teardown(code_from_the_disk_needs_no_bodies, make_folder, remove_folder),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

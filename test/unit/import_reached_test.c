/* What an algorithm's text gets of the modules that kjit brings along: each func of each of them
 * with all that it means, as if the whole module were parsed, at its own place; and nothing that it
 * does not name. */
#include "kj_test.h"

#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static kjit_module *parse_algorithm(const char *text)
{
  kjit_module *module;
  if (ki_parse_algorithm(context, text, strlen(text), NULL, 0, &module) != KJIT_OK)
    fail_msg("%s: %s", text, kjit_get_diagnostic(context, 0)->message);
  return module;
}

/* The func that names another one, and what both mean. */
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

/* Texts of the application are not kjit's, whatever their names are: they get whole modules, from
 * where they say, and a source `<block>` is not the module "block". */
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

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_func_means_the_same),
    cmocka_unit_test(what_is_not_named_is_left_out),
    cmocka_unit_test(texts_of_that_name),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}

/* For any bytes, parsing ends with a module or with errors that have locations. The printed text of
 * a module parses, and prints as the same text again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kjit/kjit.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds, const char *what, const char *first, const char *second)
{
  if (holds) return;
  fprintf(stderr, "%s\n---- first\n%s\n---- second\n%s\n", what, first ? first : "",
          second ? second : "");
  abort();
}

/* Returns the text of a module, or NULL after an error, which must have a diagnostic. */
static char *print_parsed(kjit_context *context, const char *text, size_t size)
{
  kjit_module *module = NULL;
  if (kjit_parse_module(context, "fuzz", text, size, &module) != KJIT_OK) {
    const kjit_diagnostic *first = kjit_get_diagnostic(context, 0);
    check(first && first->line && first->message && *first->message,
          "an error without a place or a message", text, NULL);
    free(kjit_copy_diagnostics_text(context));
    return NULL;
  }
  char *printed = NULL;
  check(kjit_copy_module_text(module, &printed) == KJIT_OK, "no text of a module", text, NULL);
  kjit_release_module(module);
  return printed;
}

static void check_identity(kjit_context *context, const uint8_t *data, size_t size)
{
  char *first = print_parsed(context, (const char *)data, size);
  if (!first) return;
  char *second = print_parsed(context, first, strlen(first));
  if (!second)
    check(0, "what was printed does not parse", first, kjit_copy_diagnostics_text(context));
  check(strcmp(first, second) == 0, "printing, parsing and printing gives another text", first,
        second);
  free(first);
  free(second);
}

/* Parses the same bytes as an expression. An accepted text is one func and nothing else, also in
 * its printed form. */
static void check_expression(kjit_context *context, const uint8_t *data, size_t size)
{
  static const char *const names[] = { "a", "x", "b" };
  const kjit_expression_options options = { .size_bytes = sizeof options,
                                            .parameters = names,
                                            .parameter_count = 3 };
  kjit_module *module, *again;
  kjit_function *function;
  if (kjit_parse_expression(context, &options, (const char *)data, size, &module, &function) !=
      KJIT_OK) {
    const kjit_diagnostic *first = kjit_get_diagnostic(context, 0);
    check(first && first->message && *first->message, "an error without a message", NULL, NULL);
    return;
  }
  char *text = NULL;
  check(kjit_copy_module_text(module, &text) == KJIT_OK, "no text of an expression", NULL, NULL);
  check(kjit_parse_module(context, "again", text, strlen(text), &again) == KJIT_OK,
        "the func of an expression does not parse", text, NULL);
  check(!kjit_get_kernel_name(again, 0) && kjit_get_function_name(again, 0) &&
          !kjit_get_function_name(again, 1),
        "an expression is more than a func", text, NULL);
  free(text);
  kjit_release_module(module);
  kjit_release_module(again);
}

/* Imports open no files: every name refers to one of two small sources, which import each other. */
static int find_import(void *user, const char *importer, const char *name,
                       kjit_import_source *import)
{
  static const char first[] = "import \"second\"\nfunc imported(x) { return other(x) + 1 }\n",
                    second[] = "import \"first\"\nfunc other(x) { return 2 * x }\n";
  (void)user, (void)importer;
  int is_first = name[0] % 2;
  import->name = is_first ? "first" : "second";
  import->text = is_first ? first : second;
  import->text_bytes = is_first ? sizeof first - 1 : sizeof second - 1;
  return name[0] != 'n';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  kjit_context *context = NULL;
  kjit_config config = { .size_bytes = sizeof config };
  config.find_import = find_import;
  if (kjit_create_context(&config, &context) != KJIT_OK) abort();
  check_identity(context, data, size);
  check_expression(context, data, size);
  kjit_destroy_context(context);
  return 0;
}

/* kjit_parse_expression: a formula of a user becomes a func. Its text can contain only one
 * expression, and messages have the columns of the user's text.
 * RUN: %programs/expressions
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition) require((condition), #condition, __LINE__)
static void require(int holds, const char *what, int line)
{
  if (holds) return;
  fprintf(stderr, "line %d: %s\n", line, what);
  exit(EXIT_FAILURE);
}

static kjit_context *context;
static const char *const names[] = { "a", "x", "b" };

static kjit_expression_options usual(void)
{
  return (kjit_expression_options){ .size_bytes = sizeof(kjit_expression_options),
                                    .name = "formula",
                                    .parameters = names,
                                    .parameter_count = 3 };
}

static kjit_status parse(const char *text, kjit_module **module, kjit_function **function)
{
  const kjit_expression_options options = usual();
  return kjit_parse_expression(context, &options, text, strlen(text), module, function);
}

static void test_map(void)
{
  kjit_module *module;
  kjit_function *function;
  double a[3] = { 1, 2, 3 }, x[3] = { 4, 5, 6 }, b[3] = { 7, 8, 9 }, r[3] = { 0 };
  const int64_t n = 3;
  kjit_tensor tensors[4] = { kjit_make_tensor(a, KJIT_F64, 1, &n),
                             kjit_make_tensor(x, KJIT_F64, 1, &n),
                             kjit_make_tensor(b, KJIT_F64, 1, &n),
                             kjit_make_tensor(r, KJIT_F64, 1, &n) };
  kjit_operand operands[4];
  for (int i = 0; i < 4; i++) operands[i] = kjit_operand_of(kjit_arg_tensor(&tensors[i]));
  static const char *const texts[] = { "a * x + b", "a *\n  x\n+ b",
                                       "(x if a > 0 else nan) * a + b",
                                       " fma(a, x, max(b, -inf)) " };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    memset(r, 0, sizeof r);
    if (parse(texts[i], &module, &function) != KJIT_OK) {
      REQUIRE(i == 2); /* another spelling of the condition */
      continue;
    }
    REQUIRE(kjit_map(context, &operands[3], 1, function, operands, 3, NULL) == KJIT_OK);
    REQUIRE(r[0] == 11 && r[1] == 18 && r[2] == 27);
    kjit_release_module(module);
  }
}

/* No text of a user adds a second statement, declaration or kernel. */
static void test_hostile(void)
{
  static const struct {
    const char *text;
    kjit_status status;
    uint32_t column;
  } rows[] = {
    { "a; b[0] = 99", KJIT_ERROR_SYNTAX, 2 },
    { "a } kernel k(r) { r[0] = 1", KJIT_ERROR_SYNTAX, 3 },
    { "a\n}\nkernel k(r) { r[0] = 1 }", KJIT_ERROR_SYNTAX, 0 },
    { "a\nb", KJIT_ERROR_SYNTAX, 0 },
    { "a # b", KJIT_ERROR_SYNTAX, 3 },
    { "# a", KJIT_ERROR_SYNTAX, 1 },
    { "@line(1, 1, \"other\") a", KJIT_ERROR_SYNTAX, 1 },
    { "a @line(7, 7) + b", KJIT_ERROR_SYNTAX, 3 },
    { "a = 1", KJIT_ERROR_SYNTAX, 3 },
    { "a + expression(a, x, b)", KJIT_ERROR_NAME, 5 }, /* a func that calls itself */
    { "x += 1", KJIT_ERROR_SYNTAX, 3 },
    { "a, x", KJIT_ERROR_SYNTAX, 2 },
    { "a) + (x", KJIT_ERROR_SYNTAX, 2 },
    { "return a", KJIT_ERROR_SYNTAX, 1 },
    { "let y = a", KJIT_ERROR_SYNTAX, 1 },
    { "if a { x }", KJIT_ERROR_SYNTAX, 1 },
    { "{ a }", KJIT_ERROR_SYNTAX, 1 },
    { "import \"block\"", KJIT_ERROR_SYNTAX, 1 },
    { "func f() { return 1 }", KJIT_ERROR_SYNTAX, 1 },
    { "print \"x\"", KJIT_ERROR_SYNTAX, 1 },
    { "a +", KJIT_ERROR_SYNTAX, 0 },
    { "", KJIT_ERROR_SYNTAX, 1 },
    { "  \n ", KJIT_ERROR_SYNTAX, 0 },
    { "a * y", KJIT_ERROR_NAME, 5 },
    { "expression(a, x, b)", KJIT_OK, 0 },
    { "atomic_add(x[0], 1)", KJIT_ERROR_REFUSED, 1 },
    { "a + atomic_exch(x[0], 1)", KJIT_ERROR_REFUSED, 5 },
    { "syncthreads()", KJIT_ERROR_REFUSED, 1 },
    { "nanosleep(1000)", KJIT_ERROR_REFUSED, 1 },
    { "pointer(x[0])[9]", KJIT_ERROR_REFUSED, 1 },
    { "ptx(\"trap;\")", KJIT_ERROR_REFUSED, 1 },
    { "\"text\"", KJIT_ERROR_SYNTAX, 0 },
    { "a \xff", KJIT_ERROR_SYNTAX, 0 },
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    kjit_module *module = NULL;
    kjit_function *function = NULL;
    kjit_status status = parse(rows[i].text, &module, &function);
    const kjit_diagnostic *said = kjit_get_diagnostic(context, 0);
    if (rows[i].status != KJIT_OK &&
        (status == KJIT_OK || !said ||
         (rows[i].column &&
          (said->column != rows[i].column || said->line != 1 || strcmp(said->file, "formula")))))
      printf("%s: %s, %s at %u:%u\n", rows[i].text, kjit_get_status_name(status),
             said ? said->message : "", said ? said->line : 0, said ? said->column : 0);
    REQUIRE(rows[i].status == KJIT_OK || status != KJIT_OK);
    REQUIRE(status == KJIT_OK || (!module && !function));
    kjit_release_module(module);
  }
}

static void test_misuse(void)
{
  static const char *const wrong[] = { "1a", "a b", "a) { }", "kernel", "", "a;", "a\n", "x, y" };
  kjit_module *module;
  kjit_function *function;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const char *given[] = { wrong[i] };
    kjit_expression_options options = usual();
    options.parameters = given;
    options.parameter_count = 1;
    REQUIRE(kjit_parse_expression(context, &options, "1", 1, &module, &function) ==
            KJIT_ERROR_MISUSE);
    options = usual();
    options.function_name = wrong[i];
    REQUIRE(kjit_parse_expression(context, &options, "a", 1, &module, &function) ==
            KJIT_ERROR_MISUSE);
  }
  static const char *const known[] = { "sqrt", "max", "f64", "threadIdx", "nan" };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    kjit_expression_options options = usual();
    options.function_name = known[i];
    REQUIRE(kjit_parse_expression(context, &options, "a", 1, &module, &function) ==
            KJIT_ERROR_MISUSE);
  }
  static const char *const twice[] = { "a", "x", "a" };
  static const kjit_type types[] = { KJIT_F64, KJIT_VOID, KJIT_ANY };
  kjit_expression_options options = usual();
  options.parameters = twice;
  REQUIRE(kjit_parse_expression(context, &options, "a", 1, &module, &function) ==
          KJIT_ERROR_MISUSE);
  options = usual();
  options.types = types;
  REQUIRE(kjit_parse_expression(context, &options, "a", 1, &module, &function) ==
          KJIT_ERROR_MISUSE);
  options = usual();
  options.trust = (kjit_trust)7;
  REQUIRE(kjit_parse_expression(context, &options, "a", 1, &module, &function) ==
          KJIT_ERROR_MISUSE);
  REQUIRE(kjit_parse_expression(context, NULL, "2 * pi", 6, &module, &function) == KJIT_OK);
  kjit_release_module(module);
}

/* The memory limit of a compilation applies to the parsing of the text as well. */
static void test_limit(void)
{
  enum { BYTES = 1 << 20 };
  char *text = malloc(BYTES);
  memset(text, ',', BYTES);
  for (size_t i = 1; i < BYTES; i += 2) text[i] = 'a';
  text[0] = '(';
  text[BYTES - 1] = ')'; /* (a,a,a ... ,) */
  kjit_compile_limits limits = { .size_bytes = sizeof limits, .memory_bytes = 8 << 20 };
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = "",
                         .compile_limits = &limits };
  kjit_context *limited;
  kjit_module *module;
  kjit_function *function;
  kjit_expression_options options = usual();
  options.text_limit_bytes = BYTES; /* so that the memory limit is reached first */
  REQUIRE(kjit_create_context(&config, &limited) == KJIT_OK);
  text[BYTES - 2] = 'a';
  REQUIRE(kjit_parse_expression(limited, &options, text, BYTES, &module, &function) ==
          KJIT_ERROR_LIMIT);
  REQUIRE(strstr(kjit_get_diagnostic(limited, 0)->message, "`memory`") != NULL);
  kjit_destroy_context(limited);
  free(text);
}

int main(void)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "" };
  REQUIRE(kjit_create_context(&config, &context) == KJIT_OK);
  test_map();
  test_hostile();
  test_misuse();
  test_limit();
  kjit_destroy_context(context);
  return 0;
}

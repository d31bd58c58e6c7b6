/* Shared by functions.c and modules.c. Both count failures and continue after a failure. */
#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kjit_context *context;
static int failures;

#define REQUIRE(condition) \
  do { \
    if (condition) break; \
    char *said = kjit_copy_diagnostics_text(context); \
    printf("%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, said ? said : ""); \
    kjit_free(context, said); \
    failures++; \
  } while (0)

static bool says(const char *part)
{
  char *text = kjit_copy_diagnostics_text(context);
  bool found = text && strstr(text, part);
  if (!found) printf("expected \"%s\" in:\n%s\n", part, text ? text : "");
  kjit_free(context, text);
  return found;
}

static inline kjit_module *parse(const char *text)
{
  kjit_module *module = NULL;
  REQUIRE(kjit_parse_module(context, "functions.kir", text, strlen(text), &module) == KJIT_OK);
  return module;
}

static kjit_function *find(kjit_module *module, const char *name)
{
  kjit_function *function = NULL;
  REQUIRE(kjit_get_function(module, name, &function) == KJIT_OK);
  return function;
}

static inline kjit_tensor tensor_of(void *data, uint8_t code, uint8_t bits, int64_t *shape,
                                    int32_t rank)
{
  return (kjit_tensor){ .data = data,
                        .device_type = 1,
                        .rank = rank,
                        .code = code,
                        .bits = bits,
                        .lanes = 1,
                        .shape = shape };
}

/* Runs the tests and returns the exit status of the program. */
static inline int run_tests(void (*tests)(void))
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = "";
  config.checks = KJIT_CHECK_BOUNDS;
  if (kjit_create_context(&config, &context) != KJIT_OK) return EXIT_FAILURE;
  tests();
  kjit_destroy_context(context);
  return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif

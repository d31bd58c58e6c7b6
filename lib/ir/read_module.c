/* A module from its text: parsed, with its imports, and finished. */
#include <string.h>
#include <time.h>

#include "ir/parser.h"

static uint64_t now_ns(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void kj_add_source(kjit_module *module, const char *name, const char *text, size_t size_bytes)
{
  size_t count = module->sources.count;
  kj_source *sources = KJ_NEW_ARRAY(&module->arena, kj_source, count + 1);
  if (count) memcpy(sources, module->sources.items, count * sizeof *sources);
  sources[count] = (kj_source){ kj_copy_string(&module->arena, name, strlen(name)),
                                kj_copy_string(&module->arena, text, size_bytes), size_bytes };
  module->sources = (kj_sources){ sources, count + 1 };
}

static void read_text(kjit_module *module, const char *name, const char *text, size_t size_bytes,
                      bool with_imports, kj_diagnostics *diagnostics)
{
  bool is_too_long = size_bytes > KJ_MAX_SOURCE_BYTES;
  kj_add_source(module, name, text, is_too_long ? 0 : size_bytes);
  if (is_too_long)
    kj_report(diagnostics, &module->sources, (kj_location){ 0, 1, 1 }, KJIT_SEVERITY_ERROR,
              KJIT_ERROR_SYNTAX, "the text has %zu bytes; at most %d are read", size_bytes,
              KJ_MAX_SOURCE_BYTES);
  else kj_parse_source(module, 0, diagnostics);
  if (with_imports && !diagnostics->error_count) kj_read_imports(module, diagnostics);
  if (diagnostics->error_count) longjmp(*module->arena.on_failure, KJ_JUMP_ERROR);
}

static kjit_status make_module(kjit_module *made, const char *name, const char *text,
                               size_t size_bytes, bool verify, kj_diagnostics *diagnostics)
{
  jmp_buf on_failure;
  made->arena.on_failure = &on_failure;
  int jump = setjmp(on_failure);
  if (jump == 0) {
    uint64_t start = now_ns();
    read_text(made, name ? name : "module", text, size_bytes, verify, diagnostics);
    if (verify) kj_finish_module(made, diagnostics);
    made->parse_time_ns = now_ns() - start;
  }
  made->arena.on_failure = NULL;
  if (jump == KJ_JUMP_MEMORY)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
  return diagnostics->status;
}

static kjit_status parse_module(kjit_context *context, kj_types *types, const char *name,
                                const char *text, size_t size_bytes, bool verify,
                                kj_diagnostics *diagnostics, kjit_module **module)
{
  *module = NULL;
  kjit_module *made = kj_create_module(context, types);
  if (!made) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  kjit_status status = make_module(made, name, text, size_bytes, verify, diagnostics);
  if (status == KJIT_OK) {
    kj_publish_module(made);
    *module = made;
  } else kj_destroy_module(made);
  return status;
}

kjit_status kj_parse_module(kjit_context *context, kj_types *types, const char *name,
                            const char *text, size_t size_bytes, kj_diagnostics *diagnostics,
                            kjit_module **module)
{
  return parse_module(context, types, name, text, size_bytes, true, diagnostics, module);
}

kjit_status kj_read_module(kj_types *types, const char *name, const char *text, size_t size_bytes,
                           kj_diagnostics *diagnostics, kjit_module **module)
{
  return parse_module(NULL, types, name, text, size_bytes, false, diagnostics, module);
}

/* Compiles to any stage that the tools can show and returns its output. */
#ifndef TOOL_EMIT_H
#define TOOL_EMIT_H

#include <driver/error.h>

typedef struct tool_emission {
  kjit_context *context;
  kjit_module *module; /* module for the kir stage; NULL means the specialization's module */
  /* if not NULL, emits this specialization's code, and the fields below are ignored */
  kjit_specialization *specialization;
  kjit_kernel *kernel;
  kjit_function *function; /* if not NULL, emits this func as a C function instead of the kernel */
  const char *symbol;      /* symbol of the C function; NULL means the func's name */
  const char *signature;
  kjit_compile_options options;
} tool_emission;

bool tool_find_stage(const char *name, kjit_stage *stage);
char *tool_stage_names(void); /* Returns the list "kir, typed, ...", which the caller frees. */
/* returns the help text, with one line for each stage; the caller frees it */
char *tool_stage_help(void);
bool tool_stage_is_text(kjit_stage stage);
/* Returns whether a target of this kind has the stage. */
bool tool_stage_fits(kjit_stage stage, bool is_gpu);
const char *tool_stage_name(kjit_stage stage);
/* returns the stage for an ending such as ".ptx", or -1 if the ending is unknown */
int tool_stage_of_path(const char *path);

/* Emits a stage to *code, which the caller frees with free(). Text stages end with a 0 byte that
 * size_bytes does not count. The kir stage contains the whole module. */
bool tool_emit(tool_error *error, const tool_emission *emission, kjit_stage stage, void **code,
               size_t *size_bytes);

#endif

/* Every stage that the tools can show. */
#ifndef TOOL_EMIT_H
#define TOOL_EMIT_H

#include <driver/error.h>

typedef struct tool_emission {
  kjit_context *context;
  kjit_module *module; /* that the kir stage is; NULL: it is that of the specialization */
  kjit_specialization *specialization; /* not NULL: the code of this, and nothing below matters */
  kjit_kernel *kernel;
  kjit_function *function; /* not NULL: instead of the kernel, as a C function */
  const char *symbol;      /* of that; NULL: its own name */
  const char *signature;
  kjit_compile_options options;
} tool_emission;

bool tool_find_stage(const char *name, kjit_stage *stage);
char *tool_stage_names(void); /* "kir, typed, ..." */
char *tool_stage_help(void);  /* a line for each stage */
bool tool_stage_is_text(kjit_stage stage);
/* whether a target of that kind has the stage */
bool tool_stage_fits(kjit_stage stage, bool is_gpu);
const char *tool_stage_name(kjit_stage stage);
int tool_stage_of_path(const char *path); /* by the ending, ".ptx"; -1: unknown */

/* code: free with free(). Text stages end in a 0 byte that size_bytes does not count. The kir stage
 * is the whole module. */
bool tool_emit(tool_error *error, const tool_emission *emission, kjit_stage stage, void **code,
               size_t *size_bytes);

#endif

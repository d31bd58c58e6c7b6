/* Every stage that the tools can show: the library's, and what NVIDIA's programs make of PTX. */
#ifndef TOOL_EMIT_H
#define TOOL_EMIT_H

#include <driver/error.h>

typedef enum tool_stage { TOOL_STAGE_CUBIN = KJIT_STAGE_COUNT, TOOL_STAGE_SASS, TOOL_STAGE_COUNT } tool_stage;

typedef struct tool_emission {
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_function *function; /* not NULL: instead of the kernel, as a C function */
  const char *symbol;      /* of that; NULL: its own name */
  const char *signature;
  kjit_compile_options options;
  const char *ptxas; /* NULL: looked for */
} tool_emission;

bool tool_find_stage(const char *name, int *stage);
char *tool_stage_names(void); /* "kir, typed, ..." */
char *tool_stage_help(void);  /* a line for each stage */
bool tool_stage_is_text(int stage);
bool tool_stage_fits(int stage, bool is_gpu); /* whether a target of that kind has the stage */
const char *tool_stage_name(int stage);
int tool_stage_of_path(const char *path); /* by the ending, ".ptx"; -1: unknown */

/* code: free with free(). Text stages end in a 0 byte that size_bytes does not count. The kir stage is the whole module. */
bool tool_emit(tool_error *error, const tool_emission *emission, int stage, void **code, size_t *size_bytes);

#endif

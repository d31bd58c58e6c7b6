#define _GNU_SOURCE
#include <driver/emit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stage {
  const char *name, *what, *ending;
  bool is_text, is_of_gpu, is_of_cpu; /* is_of_gpu and is_of_cpu: only targets of this kind have the
                                       * stage */
} stage;

static const char *const endings[KJIT_STAGE_COUNT] = {
  [KJIT_STAGE_KIR] = ".kir",   [KJIT_STAGE_LLVM] = ".ll",  [KJIT_STAGE_PTX] = ".ptx",
  [KJIT_STAGE_ASM] = ".s",     [KJIT_STAGE_OBJECT] = ".o", [KJIT_STAGE_CUBIN] = ".cubin",
  [KJIT_STAGE_SASS] = ".sass",
};

static stage describe(kjit_stage index)
{
  static const stage stages[KJIT_STAGE_COUNT] = {
#define ROW(name, text, is_text, what) \
  [KJIT_STAGE_##name] = { text, what, NULL, is_text, false, false },
    KJIT_STAGES(ROW)
#undef ROW
  };
  stage s = stages[index];
  s.ending = endings[index];
  s.is_of_gpu = index == KJIT_STAGE_PTX || index == KJIT_STAGE_CUBIN || index == KJIT_STAGE_SASS;
  s.is_of_cpu = index == KJIT_STAGE_ASM || index == KJIT_STAGE_OBJECT;
  return s;
}

bool tool_find_stage(const char *name, kjit_stage *found)
{
  for (int i = 0; i < KJIT_STAGE_COUNT; i++) {
    if (strcmp(describe(i).name, name)) continue;
    *found = i;
    return true;
  }
  return false;
}

const char *tool_stage_name(kjit_stage index) { return describe(index).name; }

bool tool_stage_is_text(kjit_stage index) { return describe(index).is_text; }

bool tool_stage_fits(kjit_stage index, bool is_gpu)
{
  return is_gpu ? !describe(index).is_of_cpu : !describe(index).is_of_gpu;
}

static char *join_stages(bool with_help)
{
  char *joined = tool_copy_text("", 0);
  for (int i = 0; i < KJIT_STAGE_COUNT; i++) {
    const char *separator = i && !with_help ? ", " : "";
    char *longer = with_help
                     ? tool_format("%s  %-12s %s\n", joined, describe(i).name, describe(i).what)
                     : tool_format("%s%s%s", joined, separator, describe(i).name);
    free(joined);
    joined = longer;
  }
  return joined;
}

char *tool_stage_names(void) { return join_stages(false); }

char *tool_stage_help(void) { return join_stages(true); }

int tool_stage_of_path(const char *path)
{
  const char *ending = strrchr(path, '.');
  for (int i = 0; ending && i < KJIT_STAGE_COUNT; i++)
    if (describe(i).ending && !strcmp(describe(i).ending, ending)) return i;
  return -1;
}

/* ---- code ---- */

static bool copy_module(tool_error *error, const tool_emission *emission, void **code,
                        size_t *size_bytes)
{
  char *text;
  kjit_status status = kjit_copy_module_text(emission->module, &text);
  if (status != KJIT_OK)
    return tool_fail_kjit(error, emission->context, status, "printing the module");
  *size_bytes = strlen(text);
  *code = tool_copy_text(text, *size_bytes);
  kjit_free(emission->context, text);
  return true;
}

static kjit_status compile(const tool_emission *emission, kjit_stage index, void **code,
                           size_t *size_bytes)
{
  if (emission->specialization)
    return kjit_copy_specialization_code(emission->specialization, index, code, size_bytes);
  if (!emission->function)
    return kjit_compile(emission->kernel, emission->signature, &emission->options, index, code,
                        size_bytes);
  return kjit_compile_function(emission->function, emission->signature, emission->symbol,
                               &emission->options, index, code, size_bytes);
}

bool tool_emit(tool_error *error, const tool_emission *emission, kjit_stage index, void **code,
               size_t *size_bytes)
{
  void *compiled;
  if (index == KJIT_STAGE_KIR && emission->module)
    return copy_module(error, emission, code, size_bytes);
  kjit_status status = compile(emission, index, &compiled, size_bytes);
  if (status == KJIT_OK) {
    *code = tool_copy_text(compiled, *size_bytes);
    kjit_free(emission->context, compiled);
    return true;
  }
  kjit_specialization_info info = { .size_bytes = sizeof info,
                                    .signature = emission->signature,
                                    .target = emission->options.target };
  if (emission->specialization) kjit_get_specialization_info(emission->specialization, &info);
  char *doing = tool_format("compiling for \"%s\" on %s", info.signature, info.target);
  tool_fail_kjit(error, emission->context, status, doing);
  free(doing);
  return false;
}

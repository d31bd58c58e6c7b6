/* Linked code: CUDA C, PTX, cubins and other files that the GPU linker combines with a kernel
 * (kjit_bind_linked). This file detects the format of each file and checks it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ir/context.h"
#include "ir/module.h"
#include "support/host_process.h"

enum { FORMATS = KJIT_LINK_LTOIR + 1, MOST_CODE_BYTES = 256 << 20 };

static const char *const format_names[FORMATS] = {
  [KJIT_LINK_CUDA_C] = "CUDA C",         [KJIT_LINK_PTX] = "PTX",
  [KJIT_LINK_CUBIN] = "a cubin",         [KJIT_LINK_FATBIN] = "a fatbin",
  [KJIT_LINK_OBJECT] = "an object file", [KJIT_LINK_ARCHIVE] = "an archive",
  [KJIT_LINK_LTOIR] = "LTO-IR"
};

/* ---- formats ---- */

static bool starts_with(const void *data, size_t size_bytes, const char *magic, size_t length)
{
  return size_bytes >= length && memcmp(data, magic, length) == 0;
}

/* Returns the format of an ELF file: a CUDA ELF file, or a CPU object file that contains code for
 * CUDA. */
static kjit_link_format find_elf_format(const unsigned char *data, size_t size_bytes)
{
  enum { MACHINE = 18, CUDA = 190 };
  if (size_bytes < MACHINE + 2) return KJIT_LINK_DETECT;
  return data[MACHINE] == CUDA && data[MACHINE + 1] == 0 ? KJIT_LINK_CUBIN : KJIT_LINK_OBJECT;
}

/* Skips blanks and comments. */
static const char *find_start(const char *at, const char *end)
{
  while (at < end) {
    const char *close = NULL;
    if (isspace((unsigned char)*at)) close = at + 1;
    else if (starts_with(at, (size_t)(end - at), "//", 2))
      close = memchr(at, '\n', (size_t)(end - at));
    else if (starts_with(at, (size_t)(end - at), "/*", 2)) close = strstr(at + 2, "*/");
    else return at;
    at = close ? close + (*close == '*' ? 2 : 0) : end;
  }
  return at;
}

/* Detects the format of data, which must be followed by a 0 byte. Returns DETECT if the format is
 * unknown. */
static kjit_link_format find_format(const char *data, size_t size_bytes)
{
  static const struct {
    const char *magic;
    size_t length;
    kjit_link_format format;
  } magics[] = { { "\x50\xED\x55\xBA", 4, KJIT_LINK_FATBIN },
                 { "!<arch>\n", 8, KJIT_LINK_ARCHIVE },
                 { "\xED\x43\x4E\x7F", 4, KJIT_LINK_LTOIR } };
  if (starts_with(data, size_bytes, "\177ELF", 4))
    return find_elf_format((const unsigned char *)data, size_bytes);
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
    if (starts_with(data, size_bytes, magics[i].magic, magics[i].length)) return magics[i].format;
  if (memchr(data, 0, size_bytes)) return KJIT_LINK_DETECT;
  const char *start = find_start(data, data + size_bytes);
  return strncmp(start, ".version", 8) == 0 ? KJIT_LINK_PTX : KJIT_LINK_CUDA_C;
}

static bool has_includes(const char *text)
{
  for (const char *at = text; (at = strchr(at, '#')) != NULL;) {
    at++;
    while (*at == ' ' || *at == '\t') at++;
    if (strncmp(at, "include", 7) == 0) return true;
  }
  return strstr(text, "__has_include") != NULL;
}

/* ---- copies ---- */

static const char *copy_text(kj_arena *arena, const char *text)
{
  return kj_copy_string(arena, text ? text : "", text ? strlen(text) : 0);
}

static void copy_input(kj_arena *arena, const ki_linked_code *given, ki_linked_code *copy)
{
  XXH3_state_t state;
  uint32_t format = (uint32_t)given->format;
  *copy = *given;
  copy->name = copy_text(arena, given->name);
  copy->options = copy_text(arena, given->options);
  copy->data = kj_copy_string(arena, given->data, given->size_bytes);
  copy->has_includes = given->format == KJIT_LINK_CUDA_C && has_includes(copy->data);
  XXH3_128bits_reset(&state);
  XXH3_128bits_update(&state, &format, sizeof format);
  XXH3_128bits_update(&state, copy->name, strlen(copy->name) + 1);
  XXH3_128bits_update(&state, copy->options, strlen(copy->options) + 1);
  XXH3_128bits_update(&state, copy->data, copy->size_bytes);
  XXH128_hash_t digest = XXH3_128bits_digest(&state);
  copy->digest[0] = digest.low64;
  copy->digest[1] = digest.high64;
}

void ki_copy_linked(kj_arena *arena, ki_bound_extern *given)
{
  ki_linked_code *copies = KJ_NEW_ARRAY(arena, ki_linked_code, given->linked_count);
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (size_t i = 0; i < given->linked_count; i++) {
    copy_input(arena, &given->linked[i], &copies[i]);
    XXH3_128bits_update(&state, copies[i].digest, sizeof copies[i].digest);
  }
  XXH128_hash_t digest = XXH3_128bits_digest(&state);
  given->linked = copies;
  given->symbol = copy_text(arena, given->symbol);
  given->digest[0] = digest.low64;
  given->digest[1] = digest.high64;
}

/* ---- the call ---- */

static bool is_symbol(const char *text)
{
  if (isdigit((unsigned char)*text)) return false;
  for (; *text; text++)
    if (!isalnum((unsigned char)*text) && *text != '_' && *text != '$') return false;
  return true;
}

static kjit_status read_input(kjit_context *context, const kjit_link_input *input,
                              ki_linked_code *read)
{
  const char *name = input->name ? input->name : "the linked code";
  size_t size_bytes = input->data_bytes;
  if (!input->data || (unsigned)input->format >= FORMATS || size_bytes > MOST_CODE_BYTES)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT, "kjit_bind_linked: %s %s", name,
                        !input->data                   ? "has no data"
                        : size_bytes > MOST_CODE_BYTES ? "is larger than 256 MiB"
                                                       : "has an unknown format");
  bool is_text = input->format == KJIT_LINK_CUDA_C || input->format == KJIT_LINK_PTX;
  const char *data = input->data;
  kj_buffer ended = { 0 }; /* the data followed by a 0 byte */
  kj_append(&ended, data, size_bytes);
  if (ended.failed) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kjit_link_format found = find_format(ended.text ? ended.text : "", size_bytes);
  if (is_text || found == KJIT_LINK_DETECT) /* size_bytes may include a terminating 0 byte */
    while (size_bytes && data[size_bytes - 1] == 0) size_bytes--;
  if (found == KJIT_LINK_DETECT && size_bytes < input->data_bytes)
    found = find_format(ended.text, size_bytes);
  kj_free_buffer(&ended);
  /* The format that the caller gives can be correct although this file detects another one: CUDA C
   * can contain a comment that looks like PTX, and the driver knows more kinds of LTO-IR. */
  bool fits = input->format == KJIT_LINK_DETECT
                ? found != KJIT_LINK_DETECT
                : input->format == KJIT_LINK_LTOIR || input->format == found;
  if (!fits)
    return ki_fail_call(context, KJIT_ERROR_ARGUMENT, "kjit_bind_linked: %s is %s%s", name,
                        input->format == KJIT_LINK_DETECT ? "in no known format" : "not ",
                        input->format == KJIT_LINK_DETECT ? "" : format_names[input->format]);
  *read = (ki_linked_code){ .format = input->format ? input->format : found,
                            .name = name,
                            .options = input->options,
                            .data = data,
                            .size_bytes = size_bytes };
  return KJIT_OK;
}

static kjit_status check_call(kjit_module *module, const char *name, const char *symbol,
                              const kjit_link_input *inputs, size_t count, kjit_module **bound)
{
  if (!name || !bound || (count && !inputs))
    return ki_fail_call(module->context, KJIT_ERROR_MISUSE, "kjit_bind_linked: %s is NULL",
                        !name    ? "name"
                        : !bound ? "bound"
                                 : "inputs");
  if (!count)
    return ki_fail_call(module->context, KJIT_ERROR_ARGUMENT,
                        "kjit_bind_linked: no code is given for `%s`", name);
  if (symbol && (!*symbol || !is_symbol(symbol)))
    return ki_fail_call(module->context, KJIT_ERROR_NAME,
                        "kjit_bind_linked: `%s` is not a valid name of a function in linked code",
                        symbol);
  return ki_check_extern(module, name);
}

kjit_status kjit_bind_linked(kjit_module *module, const char *name, const char *symbol,
                             const kjit_link_input *inputs, size_t count, kjit_module **bound)
{
  if (!module) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(module->context)) return KJIT_ERROR_FORKED;
  kjit_status status = check_call(module, name, symbol, inputs, count, bound);
  if (status != KJIT_OK) return status;
  ki_linked_code *read = calloc(count, sizeof *read);
  if (!read) return ki_fail_call(module->context, KJIT_ERROR_MEMORY, "out of memory");
  for (size_t i = 0; i < count && status == KJIT_OK; i++)
    status = read_input(module->context, &inputs[i], &read[i]);
  if (status == KJIT_OK) {
    ki_bound_extern given = { .kind = KJ_CODE_LINKED,
                              .symbol = symbol ? symbol : name,
                              .linked = read,
                              .linked_count = count };
    status = ki_bind_given(module, name, &given, bound);
  }
  free(read);
  return status;
}

/* Serializes requests to compilation child processes and their answers. */
#include <stdlib.h>
#include <string.h>

#include "code/child.h"
#include "code/disk.h"
#include "ir/context.h"
#include "ir/pack_ir.h"

kj_frame kj_make_frame(size_t size_bytes)
{
  kj_frame frame = { .size_bytes = size_bytes };
  size_t length = strlen(kj_build);
  memcpy(frame.build, kj_build, length < sizeof frame.build ? length : sizeof frame.build);
  return frame;
}

bool kj_is_own_frame(const kj_frame *frame)
{
  kj_frame own = kj_make_frame(0);
  return !memcmp(frame->build, own.build, sizeof own.build);
}

/* ---- descriptions of structs ---- */

static const kj_field start_outline_fields[] = {
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_child_start, compiler_path) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_child_start, libdevice_path) },
};
static KJ_OUTLINE(start_outline, kj_child_start);

static const kj_field argument_outline_fields[] = {
  { .kind = KJ_FIELD_NUMBER, .offset = offsetof(kj_argument, type) },
  { .kind = KJ_FIELD_POINTER,
    .offset = offsetof(kj_argument, function),
    .outline = &ki_decl_outline },
};
static KJ_OUTLINE(argument_outline, kj_argument);

static size_t measure_relations(const void *item, const void *user)
{
  const kj_signature *signature = item;
  (void)user;
  return (size_t)signature->count * signature->count;
}

static const kj_field signature_outline_fields[] = {
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(kj_signature, arguments),
    .outline = &argument_outline,
    KJ_FIELD_COUNT_OF(kj_signature, count) },
  { .kind = KJ_FIELD_BYTES,
    .offset = offsetof(kj_signature, relations),
    .size_bytes = 1,
    .measure = measure_relations },
};
static KJ_OUTLINE(signature_outline, kj_signature);

static const kj_field compile_outline_fields[] = {
  { .kind = KJ_FIELD_POINTER,
    .offset = offsetof(kj_compile_request, module),
    .outline = &ki_module_outline },
  { .kind = KJ_FIELD_POINTER,
    .offset = offsetof(kj_compile_request, kernel),
    .outline = &ki_function_outline },
  { .kind = KJ_FIELD_POINTER,
    .offset = offsetof(kj_compile_request, signature),
    .outline = &signature_outline },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_compile_request, after_pass) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_compile_request, symbol) },
};
static KJ_OUTLINE(compile_outline, kj_compile_request);

static size_t measure_input(const void *item, const void *user)
{
  (void)user;
  return ((const kj_link_input *)item)->size_bytes + 1;
}

static const kj_field input_outline_fields[] = {
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_link_input, name) },
  { .kind = KJ_FIELD_BYTES,
    .offset = offsetof(kj_link_input, data),
    .size_bytes = 1,
    .measure = measure_input },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_link_input, options) },
};
static KJ_OUTLINE(input_outline, kj_link_input);

static const kj_field request_outline_fields[] = {
  { .kind = KJ_FIELD_POINTER,
    .offset = offsetof(kj_child_request, compile),
    .outline = &compile_outline },
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(kj_child_request, inputs),
    .outline = &input_outline,
    KJ_FIELD_COUNT_OF(kj_child_request, input_count) },
};
static KJ_OUTLINE(request_outline, kj_child_request);

static const kj_outline phrase_outline = { .size_bytes = sizeof(kjit_phrase) };

static const kj_field diagnostic_outline_fields[] = {
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kjit_diagnostic, file) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kjit_diagnostic, message) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kjit_diagnostic, source_line) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kjit_diagnostic, failure_text) },
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(kjit_diagnostic, phrases),
    .outline = &phrase_outline,
    KJ_FIELD_COUNT_OF(kjit_diagnostic, phrase_count) },
};
static KJ_OUTLINE(diagnostic_outline, kjit_diagnostic);

static const kj_outline parameter_outline = { .size_bytes = sizeof(kj_parameter) };
static const kj_outline failure_outline = { .size_bytes = sizeof(kj_failure_site) };

/* Returns the size of code including the 0 byte after it. */
static size_t measure_code(const void *item, const void *user)
{
  (void)user;
  return ((const kj_child_answer *)item)->code.size_bytes + 1;
}

static const kj_field answer_outline_fields[] = {
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(kj_child_answer, diagnostics),
    .outline = &diagnostic_outline,
    KJ_FIELD_COUNT_OF(kj_child_answer, diagnostic_count) },
  { .kind = KJ_FIELD_BYTES,
    .offset = offsetof(kj_child_answer, code.data),
    .size_bytes = 1,
    .measure = measure_code },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_child_answer, code.entry) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_child_answer, code.facts) },
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(kj_child_answer, code.parameters),
    .outline = &parameter_outline,
    KJ_FIELD_COUNT_OF(kj_child_answer, code.parameter_count) },
  { .kind = KJ_FIELD_ITEMS,
    .offset = offsetof(kj_child_answer, code.failures),
    .outline = &failure_outline,
    KJ_FIELD_COUNT_OF(kj_child_answer, code.failure_count) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_child_answer, code.failure_texts) },
  { .kind = KJ_FIELD_TEXT, .offset = offsetof(kj_child_answer, code.prints) },
  { .kind = KJ_FIELD_NUMBER, .offset = offsetof(kj_child_answer, code.result) },
};
static KJ_OUTLINE(answer_outline, kj_child_answer);

/* ---- packing ---- */

/* Serializes a message. Returns false if memory is exhausted. types may be NULL if the message
 * contains no types. */
static bool pack(const ki_types *types, const void *root, const kj_outline *outline,
                 kj_buffer *bytes)
{
  jmp_buf on_failure;
  kj_arena arena;
  kj_init_arena(&arena, &on_failure);
  int jump = setjmp(on_failure);
  if (jump == 0 && types) ki_pack(types, root, outline, &arena, bytes);
  else if (jump == 0) kj_pack(root, outline, &(kj_pack_numbers){ 0 }, &arena, bytes);
  kj_free_arena(&arena);
  return jump == 0 && !bytes->failed;
}

bool kj_pack_start(const kj_child_start *start, kj_buffer *bytes)
{
  return pack(NULL, start, &start_outline, bytes);
}

bool kj_pack_request(const ki_types *types, const kj_child_request *request, kj_buffer *bytes)
{
  return pack(types, request, &request_outline, bytes);
}

bool kj_pack_answer(const ki_types *types, const kj_child_answer *answer, kj_buffer *bytes)
{
  return pack(types, answer, &answer_outline, bytes);
}

kj_child_start *kj_unpack_start(const void *bytes, size_t size_bytes, kj_arena *arena)
{
  return kj_unpack(bytes, size_bytes, &start_outline, &(kj_pack_numbers){ 0 }, arena);
}

kj_child_request *kj_unpack_request(kjit_context *context, const void *bytes, size_t size_bytes,
                                    kj_arena *arena)
{
  kj_child_request *request =
    ki_unpack(ki_context_types(context), bytes, size_bytes, &request_outline, arena);
  if (!request || !request->compile) return request;
  kjit_module *module = (kjit_module *)request->compile->module;
  if (!module || !request->compile->kernel || !request->compile->signature) return NULL;
  module->context = context;
  module->types = ki_context_types(context);
  return request;
}

/* ---- reading an answer ---- */

static char *copy_text(const char *text, bool *has_memory)
{
  char *copy = text ? strdup(text) : NULL;
  *has_memory = *has_memory && (copy || !text);
  return copy;
}

static void *copy_block(const void *block, size_t size_bytes, bool *has_memory)
{
  void *copy = block ? malloc(size_bytes) : NULL;
  *has_memory = *has_memory && (copy || !block);
  return copy ? memcpy(copy, block, size_bytes) : NULL;
}

static bool copy_code(const kj_code *from, kj_code *to)
{
  bool has_memory = true;
  kj_code made = *from;
  made.data = copy_block(from->data, from->size_bytes + 1, &has_memory);
  made.entry = copy_text(from->entry, &has_memory);
  made.facts = copy_text(from->facts, &has_memory);
  made.failures =
    copy_block(from->failures, from->failure_count * sizeof *from->failures, &has_memory);
  made.failure_texts = copy_text(from->failure_texts, &has_memory);
  made.prints = copy_text(from->prints, &has_memory);
  made.result_text = NULL; /* compilers do not set this field */
  made.parameters =
    copy_block(from->parameters, from->parameter_count * sizeof *from->parameters, &has_memory);
  if (has_memory) *to = made;
  else kj_free_code(&made);
  return has_memory;
}

static bool has_sound_phrases(const kjit_diagnostic *diagnostic)
{
  uint64_t length = strlen(diagnostic->message), end = 0;
  for (size_t i = 0; i < diagnostic->phrase_count; i++) {
    const kjit_phrase *phrase = &diagnostic->phrases[i];
    uint64_t stop = (uint64_t)phrase->first + phrase->size_bytes,
             argument_stop = (uint64_t)phrase->argument_first + phrase->argument_bytes;
    if (phrase->code < KJIT_PHRASE_NONE || phrase->code >= KJIT_PHRASE_COUNT ||
        phrase->first < end || stop > length)
      return false;
    if (phrase->argument_bytes && (phrase->argument_first < phrase->first || argument_stop > stop))
      return false;
    end = stop;
  }
  return true;
}

static bool is_sound_message(const kjit_diagnostic *diagnostic)
{
  return diagnostic->message && diagnostic->severity >= KJIT_SEVERITY_ERROR &&
         diagnostic->severity <= KJIT_SEVERITY_NOTE && diagnostic->status >= KJIT_OK &&
         diagnostic->status < KJIT_STATUS_COUNT && diagnostic->code >= KJIT_CODE_NONE &&
         diagnostic->code < KJIT_CODE_COUNT && has_sound_phrases(diagnostic) &&
         (diagnostic->severity != KJIT_SEVERITY_ERROR || diagnostic->status != KJIT_OK);
}

static bool is_sound_answer(const kj_child_answer *answer)
{
  bool has_error = false, is_ok = answer->status == KJIT_OK;
  for (uint64_t i = 0; i < answer->diagnostic_count; i++) {
    if (!is_sound_message(&answer->diagnostics[i])) return false;
    has_error |= answer->diagnostics[i].severity == KJIT_SEVERITY_ERROR;
  }
  return answer->status < KJIT_STATUS_COUNT && has_error == !is_ok &&
         (!is_ok || kj_is_sound_code(&answer->code)) &&
         (!answer->code.data || !((char *)answer->code.data)[answer->code.size_bytes]);
}

bool kj_take_answer(ki_types *types, const void *bytes, size_t size_bytes,
                    kj_diagnostics *diagnostics, kj_code *code, kjit_status *status)
{
  jmp_buf on_failure;
  kj_arena arena;
  volatile bool is_sound = true;
  kj_init_arena(&arena, &on_failure);
  *status = KJIT_ERROR_MEMORY;
  if (setjmp(on_failure) == 0) {
    const kj_child_answer *answer = ki_unpack(types, bytes, size_bytes, &answer_outline, &arena);
    is_sound = answer && is_sound_answer(answer);
    for (uint64_t i = 0; is_sound && i < answer->diagnostic_count; i++)
      kj_add_diagnostic(diagnostics, &answer->diagnostics[i]);
    if (is_sound && (answer->status || copy_code(&answer->code, code)))
      *status = (kjit_status)answer->status;
  }
  kj_free_arena(&arena);
  return is_sound;
}

/* Handles code for machines with a named target (kjit_config.target). A context that compiles for a
 * target records such code, and a process without a compiler depends on it. */
#include <stdlib.h>

#include "code/disk.h"

static kjit_status record(const kj_call *call, const kj_compile_request *request,
                          const kj_disk_key *key, const kj_code *code, kj_diagnostics *diagnostics)
{
  KJ_TRY(kj_record_code(call->runtime, key, call->kernel->function->decl->name, code, diagnostics));
  return kj_record_machine_code(call->device, request, key, code, diagnostics);
}

/* Describes the signature of a call without its arguments' facts. */
static kjit_status describe_general(const kj_call *call, kj_diagnostics *diagnostics,
                                    kj_signature *signature)
{
  kj_call general = *call;
  general.is_general = true;
  general.facts &= ~(uint32_t)KJ_CALL_FACTS;
  KJ_TRY(kj_describe_call(&general, diagnostics, signature));
  kj_argument *arguments = (kj_argument *)signature->arguments;
  for (uint32_t i = 0; i < signature->count; i++) arguments[i].facts = 0;
  return KJIT_OK;
}

static void free_signature(kj_signature *signature)
{
  free((void *)signature->arguments);
  free((void *)signature->relations);
  *signature = (kj_signature){ 0 };
}

/* Compiles and records code that needs no facts, unless the context has it. Reports no messages,
 * because the compilation of the code with facts has reported the same messages. */
static kjit_status record_without_facts(kj_call *call, const kj_compile_request *request,
                                        const kj_disk_key *fast, kj_diagnostics *diagnostics)
{
  kj_disk_key key = { 0 };
  kj_code code = { 0 };
  kj_diagnostics messages = { 0 };
  kj_disk *disk = call->runtime->disk;
  if (!kj_make_device_key(disk, call->device, request, &key))
    return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  kjit_status status = KJIT_OK;
  if (!kj_same_digest(key.digest, fast->digest) &&
      !kj_find_import(call->runtime, &key, NULL, &code)) {
    status = kj_compile_again(call, request->signature, &messages, &code);
    kj_note_sources(&code, &key);
    if (status == KJIT_OK) status = record(call, request, &key, &code, &messages);
    if (status != KJIT_OK) kj_copy_diagnostics(&messages, diagnostics);
  }
  kj_free_diagnostics(&messages);
  kj_free_code(&code);
  kj_free_disk_key(&key);
  return status;
}

kjit_status kj_record_target(kj_call *call, const kj_compile_request *request,
                             const kj_disk_key *key, const kj_code *code,
                             kj_diagnostics *diagnostics)
{
  kj_signature signature;
  KJ_TRY(record(call, request, key, code, diagnostics));
  if (!key || call->is_general || request->module->recipe || request->module->has_guest)
    return KJIT_OK;
  KJ_TRY(describe_general(call, diagnostics, &signature));
  kj_compile_request general = *request;
  general.signature = &signature;
  kjit_status status = record_without_facts(call, &general, key, diagnostics);
  free_signature(&signature);
  return status;
}

kjit_status kj_expect_compiler(kj_call *call, const char *signature,
                               const kj_compile_request *request, kj_diagnostics *diagnostics)
{
  kj_diagnostics why = { 0 };
  kj_disk_key named = { 0 };
  const char *name = call->kernel->function->decl->name;
  kjit_status status = KJIT_OK;
  /* if there is no such code, the compilation reports that the compiler is missing */
  if (!kj_has_named_code(call->runtime)) return KJIT_OK;
  if (kj_get_compiler(call->runtime, &why) == KJIT_ERROR_NO_COMPILER) {
    status = KJIT_ERROR_NO_COMPILER;
    if (kj_make_named_key(call->runtime->disk, request, &named))
      kj_explain_miss(call->runtime, &named, name, signature, diagnostics);
    kj_copy_diagnostics(&why, diagnostics);
    kj_free_disk_key(&named);
  }
  kj_free_diagnostics(&why);
  return status;
}

/* One emission: the way of a typed kernel to code, the same for all targets.
 *
 *   lower (lib/lower) -> optimize -> emit */
#ifndef KJ_TARGET_EMISSION_H
#define KJ_TARGET_EMISSION_H

#include "lower/lower.h"
#include "target/llvm.h"

typedef struct kj_emission kj_emission;

/* What a target does in it. */
typedef struct kj_emission_steps {
  const kj_lower_target *lowering;
  /* After kj_lower; NULL: nothing. */
  void (*finish_lowering)(kj_emission *e);
  void (*optimize)(kj_emission *e);
  /* Whether code generation needs no optimizing level: asked after optimizing; full debug
   * information has none anyway. */
  bool (*is_emitted_fast)(const kj_emission *e);
  /* Before code generation without an optimizing level, but for full debug information; NULL:
   * nothing. */
  void (*prepare_fast)(kj_emission *e);
  /* The target's own; called after a failure too. NULL: nothing. */
  void (*finish)(kj_emission *e);
} kj_emission_steps;

/* The first member of a target's own emission, in the compilation's arena. */
struct kj_emission {
  /* set by the target */
  kj_compilation *c;
  const kj_emission_steps *steps;
  void *state; /* kj_lowering.target_state */
  kj_machines *machines;
  kj_machine_kind kind;

  kj_machine *machine;
  kj_llvm_errors errors;
  LLVMContextRef context;
  LLVMModuleRef module;
  kj_lowering lowering;
};

/* Fails through kj_fail; LLVM's objects are freed on the way. */
void kj_emit_code(kj_emission *e);
bool kj_is_unoptimized(const kj_emission *e); /* for debuggers */

#endif

/* One emission: the way of a typed kernel to code, the same for all targets.
 *
 *   lower (lib/lower) -> optimize -> emit */
#ifndef KJ_TARGET_EMISSION_H
#define KJ_TARGET_EMISSION_H

#include "lower/lower.h"
#include "target/llvm.h"

typedef struct kg_emission kg_emission;

/* What a target does in it. */
typedef struct kg_emission_steps {
  const kl_lower_target *lowering;
  /* After kl_lower; NULL: nothing. */
  void (*finish_lowering)(kg_emission *e);
  void (*optimize)(kg_emission *e);
  /* Whether code generation needs no optimizing level: asked after optimizing; full debug
   * information has none anyway. */
  bool (*is_emitted_unoptimized)(const kg_emission *e);
  /* Before code generation without an optimizing level, but for full debug information; NULL:
   * nothing. */
  void (*prepare_unoptimized)(kg_emission *e);
  /* The target's own; called after a failure too. NULL: nothing. */
  void (*finish)(kg_emission *e);
} kg_emission_steps;

/* The first member of a target's own emission, in the compilation's arena. */
struct kg_emission {
  /* set by the target */
  kt_compilation *c;
  const kg_emission_steps *steps;
  void *state; /* kl_lowering.target_state */
  kg_machines *machines;
  kg_machine_kind kind;

  kg_machine *machine;
  kg_llvm_errors errors;
  LLVMContextRef context;
  LLVMModuleRef module;
  kl_lowering lowering;
};

/* Fails through kt_fail; LLVM's objects are freed on the way. */
void kg_emit_code(kg_emission *e);
bool kg_is_unoptimized(const kg_emission *e); /* for debuggers */

/* Optimizes the function by a pipeline of function passes and by nothing later: it is not part of
 * the module's size, and code generation takes short cuts for it alone. */
void kg_settle_function(kg_emission *e, LLVMValueRef function, const char *pipeline);
/* The size of the module as it is now. */
kg_module_size kg_measure_emission(const kg_emission *e);
/* Whether loops that LLVM unrolls may make a small function a large one: it is measured again after
 * that. */
bool kg_unrolls_much(const kg_emission *e);

#endif

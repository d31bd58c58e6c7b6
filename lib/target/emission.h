/* An emission: the steps from a typed kernel to code, the same for all targets.
 *
 *   lower (lib/lower) -> optimize -> emit */
#ifndef KJ_TARGET_EMISSION_H
#define KJ_TARGET_EMISSION_H

#include "lower/lower.h"
#include "target/llvm.h"

typedef struct kg_emission kg_emission;

/* The steps that differ between the targets. */
typedef struct kg_emission_steps {
  const kl_lower_target *lowering;
  /* Called after kl_lower. May be NULL. */
  void (*finish_lowering)(kg_emission *e);
  void (*optimize)(kg_emission *e);
  /* Makes plain code in place of optimize: few passes, and then code generation without
   * optimization. Called only if saves_time returns true. Both may be NULL. */
  bool (*saves_time)(const kg_emission *e);
  void (*optimize_little)(kg_emission *e);
  /* Called after optimize: returns whether code generation needs no optimization. Full debug
   * information never has any. */
  bool (*is_emitted_unoptimized)(const kg_emission *e);
  /* Called before code generation without optimization, except with full debug information. May be
   * NULL. */
  void (*prepare_unoptimized)(kg_emission *e);
  /* Releases state of the target; called after a failure as well. May be NULL. */
  void (*finish)(kg_emission *e);
} kg_emission_steps;

/* First member of the target's own emission struct, which is in the compilation's arena. */
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

/* Emits the code. Fails through kt_fail and frees LLVM's objects in that case. */
void kg_emit_code(kg_emission *e);
bool kg_is_unoptimized(const kg_emission *e); /* full debug information was requested */

/* Optimizes the function with a pipeline of function passes and excludes it from later passes. It
 * no longer counts in the size of the module, and its code generation is the fast one. */
void kg_settle_function(kg_emission *e, LLVMValueRef function, const char *pipeline);
/* Returns the size class of the module in its current state. */
kg_module_size kg_measure_emission(const kg_emission *e);
/* Returns whether unrolling may make a small function large, so that the size has to be measured
 * again afterwards. */
bool kg_unrolls_much(const kg_emission *e);

#endif

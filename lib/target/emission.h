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
  /* Called after kl_lower. Can be NULL. */
  void (*finish_lowering)(kg_emission *e);
  void (*optimize)(kg_emission *e);
  /* Called before optimize_little: returns whether plain code (few passes, and code generation
   * without optimization) saves time for this kernel. If so, optimize_little runs in place of
   * optimize. Both can be NULL. */
  bool (*saves_time)(const kg_emission *e);
  void (*optimize_little)(kg_emission *e);
  /* Called after optimize: returns whether code generation can run without optimization. With full
   * debug information, it always does. */
  bool (*is_emitted_unoptimized)(const kg_emission *e);
  /* Called before code generation without optimization, unless there is full debug information. Can
   * be NULL. */
  void (*prepare_unoptimized)(kg_emission *e);
  /* Releases the target's state. It is called after an error as well. Can be NULL. */
  void (*finish)(kg_emission *e);
} kg_emission_steps;

/* The first member of the target's own emission struct. The target's struct is in the compilation's
 * arena. */
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

/* Emits the code. Reports an error with kt_fail after it has freed LLVM's objects. */
void kg_emit_code(kg_emission *e);
bool kg_is_unoptimized(const kg_emission *e); /* full debug information was requested */

/* Optimizes a function with a pipeline of function passes, and excludes it from all later passes.
 * The function no longer counts toward the module size, and its code is generated without
 * optimization. */
void kg_settle_function(kg_emission *e, LLVMValueRef function, const char *pipeline);
/* Returns the current size class of the module. */
kg_module_size kg_measure_emission(const kg_emission *e);
/* Returns whether unrolling can make a small function large, so that the size must be measured
 * again afterwards. */
bool kg_unrolls_much(const kg_emission *e);

#endif

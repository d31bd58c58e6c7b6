/* Declarations that the files of the CPU target share. */
#ifndef KJ_TARGET_HOST_H
#define KJ_TARGET_HOST_H

#include "lower/cpu/cpu.h"
#include "target/llvm.h"
#include "target/target.h"

typedef struct kg_jit kg_jit;

/* The processor for which code is compiled. */
typedef struct kg_processor {
  const char *cpu, *features; /* LLVM's names */
  kl_cpu_features lowering;
  uint32_t vector_bytes;
} kg_processor;

typedef struct kg_host {
  kg_machines machines;
  char *cpu, *features; /* LLVM's names of this processor */
  kg_processor processors[KJ_CPU_LEVEL_COUNT];
  pthread_mutex_t mutex; /* protects the fields below */
  kg_jit *jit;           /* created at the first load */
} kg_host;

void kg_destroy_jit(kg_jit *jit);

/* host_parallel.c: decides which of the proposed loops are parallel, and marks these loops for the
 * vectorizer. Call it before the vectorizer. If `asserts` is set, adds code to the loops that
 * checks that their iterations are independent. Loops with such code are not vectorized. */
void kg_settle_parallel_loops(kl_lowering *l, bool asserts);

/* host_wrapping.c: hides counters of few bits from the vectorizer, which handles such counters
 * incorrectly. Call it before the vectorizer. */
void kg_freeze_wrapping_counters(LLVMContextRef context, LLVMModuleRef module);

/* host_paths.c: returns whether the vectorizer would take exponential time for some loop of the
 * module. */
bool kg_has_many_paths(kj_arena *arena, LLVMModuleRef module);

/* host_streams.c: adds a second version to each loop that writes large output arrays. The second
 * version writes the arrays with non-temporal stores. Call it after the vectorizer. */
void kg_stream_results(kl_lowering *l);

/* host_products.c: rewrites code that computes the high bits of products of 16-bit numbers, because
 * LLVM's code generation translates such code incorrectly. Call it after the passes. */
void kg_narrow_products(LLVMModuleRef module);

#endif

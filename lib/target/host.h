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

/* host_wrapping.c: call it before the vectorizer, which handles counters of few bits
 * incorrectly. */
void kg_freeze_wrapping_counters(LLVMContextRef context, LLVMModuleRef module);

/* host_paths.c: returns whether the vectorizer would take exponential time for some loop of the
 * module. */
bool kg_has_many_paths(kj_arena *arena, LLVMModuleRef module);

/* host_streams.c: call it after the vectorizer. Adds a second version to each loop that writes
 * large output arrays; this version writes them with non-temporal stores. */
void kg_stream_results(kl_lowering *l);

/* host_products.c: call it after the passes. Rewrites code that computes the high bits of products
 * of 16-bit numbers, because LLVM's code generation translates such code incorrectly. */
void kg_narrow_products(LLVMModuleRef module);

#endif

/* What the files of the CPU's target share. */
#ifndef KJ_TARGET_HOST_H
#define KJ_TARGET_HOST_H

#include "lower/cpu/cpu.h"
#include "target/llvm.h"
#include "target/target.h"

typedef struct kg_jit kg_jit;

/* What code is compiled for. */
typedef struct kg_processor {
  const char *cpu, *features; /* as LLVM has them */
  kl_cpu_features lowering;
  uint32_t vector_bytes;
} kg_processor;

struct kg_host {
  kg_machines machines;
  char *cpu, *features; /* LLVM's names of this processor */
  kg_processor processors[KJ_CPU_LEVEL_COUNT];
  pthread_mutex_t mutex; /* protects what follows */
  kg_jit *jit;           /* made at the first load */
};

void kg_destroy_jit(kg_jit *jit);

/* host_parallel.c: in front of the vectorizer. asserts: calls in the loops look whether what they
 * are marked for holds; then nothing vectorizes them. */
void kg_settle_parallel_loops(kl_lowering *l, bool asserts);

/* host_wrapping.c: in front of the vectorizer, which is wrong about what counts in few bits. */
void kg_freeze_wrapping_counters(LLVMContextRef context, LLVMModuleRef module);

/* host_paths.c: whether the vectorizer would take exponential time for a loop of the module. */
bool kg_has_many_paths(kj_arena *arena, LLVMModuleRef module);

/* host_products.c: after the passes. High bits of products of 16-bit numbers, which LLVM's code
 * generation gets wrong, are written so that it gets them right. */
void kg_narrow_products(LLVMModuleRef module);

#endif

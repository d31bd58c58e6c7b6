/* What the files of the CPU's target share. */
#ifndef KJ_TARGET_HOST_H
#define KJ_TARGET_HOST_H

#include "lower/cpu/cpu.h"
#include "target/llvm.h"
#include "target/target.h"

typedef struct kj_jit kj_jit;

struct kj_host {
  kj_machines machines;
  char *cpu, *features; /* LLVM's names of this processor */
  kj_cpu_features lowering;
  pthread_mutex_t mutex; /* protects what follows */
  kj_jit *jit;           /* made at the first load */
};

void kj_destroy_jit(kj_jit *jit);

/* host_parallel.c: in front of the vectorizer. */
void kj_settle_parallel_loops(kj_compilation *c, LLVMModuleRef module);

#endif

/* Target machines of LLVM. Making one takes as long as compiling a small kernel: those that are
 * idle are kept, as long as the pool. */
#ifndef KJ_TARGET_MACHINE_H
#define KJ_TARGET_MACHINE_H

#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>

/* What a machine is made of. Those of one pool differ in cpu, features and level only. */
typedef struct kj_machine_kind {
  const char *triple, *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMRelocMode relocation;
  LLVMCodeModel model;
} kj_machine_kind;

typedef struct kj_machine kj_machine;
struct kj_machine {
  kj_machine *next; /* idle */
  char *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
};

typedef struct kj_machines {
  pthread_mutex_t mutex; /* protects what follows */
  kj_machine *idle;
} kj_machines;

void kj_init_machines(kj_machines *machines);
void kj_free_machines(kj_machines *machines); /* all of them are idle */
/* An idle one or a new one, to be returned; NULL: out of memory. */
kj_machine *kj_take_machine(kj_machines *machines, const kj_machine_kind *kind);
void kj_return_machine(kj_machines *machines, kj_machine *machine);

#endif

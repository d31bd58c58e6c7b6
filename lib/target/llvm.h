/* What the targets share of LLVM: contexts whose errors become diagnostics, pass pipelines, text of
 * modules, libraries of bitcode. */
#ifndef KJ_TARGET_LLVM_H
#define KJ_TARGET_LLVM_H

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>

#include "support/diagnostics.h"
#include "typing/typed.h"

/* Target machines of LLVM. Making one takes as long as compiling a small kernel: those that are
 * idle are kept, as long as the pool. */

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

/* Once a process: registers both targets and the last net under LLVM's fatal errors. Thread safe.
 */
void kj_start_llvm(void);

/* Errors that LLVM reported for one context: it goes on after them and returns success, so they
 * must be asked for. */
typedef struct kj_llvm_errors {
  unsigned count;
  /* LLVM wanted to end the process: what belongs to the context is in an unknown state and must be
   * leaked */
  bool is_fatal;
  char first[512];
} kj_llvm_errors;

/* A context with a diagnostic handler that counts into *errors; value names only where a dump will
 * show them. */
LLVMContextRef kj_create_llvm_context(kj_llvm_errors *errors, bool keeps_names);
/* Fails the compilation with errors->first when there is one. what: the stage, for the message. */
void kj_check_llvm_errors(kj_compilation *c, const kj_llvm_errors *errors, const char *what);
/* Fails with LLVM's message, which is disposed, if error is not NULL. */
void kj_check_llvm_error(kj_compilation *c, LLVMErrorRef error, const char *what);

/* Functions for which passes are left out whose time grows with the square of the size: compile
 * time is to grow with the size. */
typedef enum kj_module_size {
  KJ_SIZE_USUAL,
  /* a function of many instructions: the loop vectorizer asks for each pair of a loop's */
  KJ_SIZE_LONG,
  /* of many basic blocks: passes over loops and conditions ask for each pair of blocks which
     dominates which */
  KJ_SIZE_LARGE
} kj_module_size;
kj_module_size kj_measure_module(LLVMModuleRef module);
/* Whether a basic block has so many loads and stores that the scheduler of code generation, which
 * compares each with the others, takes most of the time. */
bool kj_is_dense(LLVMModuleRef module);
/* Runs a pipeline in LLVM's text form. */
void kj_run_passes(kj_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                   const char *pipeline, kj_llvm_errors *errors);
/* The verifier, in builds with assertions: its message as an internal error. */
void kj_check_module(kj_compilation *c, LLVMModuleRef module);
/* The module as text, malloc'd, in code->data. */
void kj_take_module_text(kj_compilation *c, LLVMModuleRef module);
/* Assembly or object code, in code->data; text gets a 0 byte after it. */
void kj_emit_module(kj_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType type, kj_llvm_errors *errors);

/* A library of bitcode functions kept in memory, of which only what is called is linked. */
typedef struct kj_bitcode kj_bitcode;
/* NULL: it cannot be read or is not bitcode; *reason says why (static text). simplify is called
 * once for each function that is ever linked, with a module of it and of what it needs: later
 * kernels link what it leaves. NULL: nothing. */
kj_bitcode *kj_open_bitcode(const char *path, void (*simplify)(LLVMModuleRef module),
                            const char **reason);
void kj_close_bitcode(kj_bitcode *bitcode);
/* Links the functions that module declares and bitcode defines. */
void kj_link_bitcode(kj_compilation *c, kj_bitcode *bitcode, LLVMModuleRef module,
                     kj_llvm_errors *errors);

/* extern_code.c: links the LLVM IR that the host bound to extern funcs of the compilation; false:
 * there is none. Fails where it is no such code. */
bool kj_link_externs(kj_compilation *c, LLVMModuleRef module, kj_llvm_errors *errors);
/* Whether the name is that of an extern func of the compilation. */
bool kj_is_extern(const kj_compilation *c, const char *symbol);

uint64_t kj_now_ns(void);

#endif

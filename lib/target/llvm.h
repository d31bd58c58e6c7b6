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
typedef struct kg_machine_kind {
  const char *triple, *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMRelocMode relocation;
  LLVMCodeModel model;
} kg_machine_kind;

typedef struct kg_machine kg_machine;
struct kg_machine {
  kg_machine *next; /* idle */
  char *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
};

typedef struct kg_machines {
  pthread_mutex_t mutex; /* protects what follows */
  kg_machine *idle;
} kg_machines;

void kg_init_machines(kg_machines *machines);
void kg_free_machines(kg_machines *machines); /* all of them are idle */
/* An idle one or a new one, to be returned; NULL: out of memory. */
kg_machine *kg_take_machine(kg_machines *machines, const kg_machine_kind *kind);
void kg_return_machine(kg_machines *machines, kg_machine *machine);

/* Once a process: registers both targets and the last net under LLVM's fatal errors. Thread safe.
 */
void kg_start_llvm(void);

/* Errors that LLVM reported for one context: it goes on after them and returns success, so they
 * must be asked for. */
typedef struct kg_llvm_errors {
  unsigned count;
  /* LLVM wanted to end the process: what belongs to the context is in an unknown state and must be
   * leaked */
  bool is_fatal;
  char first[512];
  /* of the frames of all functions that kg_report_frames was asked for, when they have been emitted
   */
  uint64_t stack_bytes;
} kg_llvm_errors;

/* Around calls of LLVM that may end the process: then the compilation fails instead. */
void kg_enter_llvm(kt_compilation *c, kg_llvm_errors *errors);
void kg_leave_llvm(void);

/* A context with a diagnostic handler that counts into *errors; value names only where a dump will
 * show them. */
LLVMContextRef kg_create_llvm_context(kg_llvm_errors *errors, bool keeps_names);
/* Fails the compilation with errors->first when there is one. what: the stage, for the message. */
void kg_check_llvm_errors(kt_compilation *c, const kg_llvm_errors *errors, const char *what);
/* Fails with LLVM's message, which is disposed, if error is not NULL. */
void kg_check_llvm_error(kt_compilation *c, LLVMErrorRef error, const char *what);

/* Functions for which passes are left out whose time grows with the square of the size: compile
 * time is to grow with the size. */
typedef enum kg_module_size {
  KJ_SIZE_USUAL,
  /* a function of many instructions: the loop vectorizer asks for each pair of a loop's */
  KJ_SIZE_LONG,
  /* of many basic blocks: passes over loops and conditions ask for each pair of blocks which
     dominates which */
  KJ_SIZE_LARGE,
  /* so many blocks, or instructions, that passes over single instructions do, too: of each value
     they look at all conditions that are known of it, and at chains of others */
  KJ_SIZE_HUGE
} kg_module_size;
kg_module_size kg_measure_module(LLVMModuleRef module);
kg_module_size kg_measure_function(LLVMValueRef function);
/* Whether LLVM leaves the function as it is (optnone); it is in no measure of its module then. */
bool kg_is_settled(LLVMValueRef function);
/* Whether a basic block has so many loads and stores that the scheduler of code generation, which
 * compares each with the others, takes most of the time. */
bool kg_is_dense(LLVMModuleRef module);
/* Whether a block has so many different addresses that are no constant distance from another that
 * the search for those that differ by a multiple of one value, which compares each with all before
 * it, takes most of the time. */
bool kg_has_many_addresses(LLVMModuleRef module);
/* Whether a function has so many instructions that code generation's strength reduction, which
 * compares those that dominate each other, and its searches for common ones take most of the time;
 * an assembler that optimizes does that, too. */
bool kg_is_lengthy(LLVMModuleRef module);
/* Whether a basic block has so many instructions that the loop vectorizer, which asks for the type
 * and the uniformity of each by walking its operands, takes most of the time. */
bool kg_has_long_block(LLVMModuleRef module);
/* May stop counting when there are more than most. */
uint64_t kg_count_function(LLVMValueRef function, uint64_t most);
uint64_t kg_count_instructions(LLVMModuleRef module, uint64_t most);
/* The bits of the widest vectors that instructions of the module make, masks aside; 0: none. */
uint32_t kg_measure_vectors(LLVMModuleRef module, LLVMTargetDataRef layout);
/* Runs a pipeline in LLVM's text form. Fails where a limit of the compilation is reached: between
 * the passes of a large module, which run one by one. */
void kg_run_passes(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                   const char *pipeline, kg_llvm_errors *errors);
/* The same for one function, at once. */
void kg_run_function_passes(kt_compilation *c, LLVMValueRef function, LLVMTargetMachineRef machine,
                            const char *pipeline, kg_llvm_errors *errors);
/* Calls `rewrite` for each instruction of the module. `rewrite` may build before the instruction,
 * replace and erase it, and returns the instruction that comes next. */
void kg_rewrite_each(LLVMModuleRef module,
                     LLVMValueRef (*rewrite)(LLVMBuilderRef builder, LLVMValueRef instruction));
/* Replaces and erases the instruction, and returns the one after it. */
LLVMValueRef kg_replace(LLVMValueRef instruction, LLVMValueRef by);
/* The verifier, in builds with assertions: its message as an internal error. */
void kg_check_module(kt_compilation *c, LLVMModuleRef module);
/* The module as text, malloc'd, in code->data. */
void kg_take_module_text(kt_compilation *c, LLVMModuleRef module);
/* Emission adds the size of each function's frame to kg_llvm_errors.stack_bytes. */
void kg_report_frames(LLVMContextRef context, LLVMModuleRef module);
/* Assembly or object code, in code->data; text gets a 0 byte after it. */
void kg_emit_module(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType type, kg_llvm_errors *errors);

/* A library of bitcode functions kept in memory, of which only what is called is linked. */
typedef struct kg_bitcode kg_bitcode;
/* NULL: it cannot be read or is not bitcode; *reason says why (static text). simplify is called
 * once for each function that is ever linked, with a module of it and of what it needs: later
 * kernels link what it leaves. NULL: nothing. */
kg_bitcode *kg_open_bitcode(const char *path, void (*simplify)(LLVMModuleRef module),
                            const char **reason);
void kg_close_bitcode(kg_bitcode *bitcode);
/* Links the functions that module declares and bitcode defines. */
void kg_link_bitcode(kt_compilation *c, kg_bitcode *bitcode, LLVMModuleRef module,
                     kg_llvm_errors *errors);

/* extern_code.c: links the LLVM IR that the host bound to extern funcs of the compilation; false:
 * there is none. Fails where it is no such code. */
bool kg_link_externs(kt_compilation *c, LLVMModuleRef module, kg_llvm_errors *errors);
/* Whether the name is that of an extern func of the compilation. */
bool kg_is_extern(const kt_compilation *c, const char *symbol);

#endif

/* LLVM functions that the targets share: contexts whose errors become kjit's diagnostics, pass
 * pipelines, the text of modules, and bitcode libraries. */
#ifndef KJ_TARGET_LLVM_H
#define KJ_TARGET_LLVM_H

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <pthread.h>

#include "support/diagnostics.h"
#include "typing/typed.h"

/* Pools of LLVM target machines. Creating a machine takes as long as compiling a small kernel, so
 * the pool keeps machines that are not in use until it is freed. */

/* The parameters of a target machine. The machines in a pool differ only in cpu, features and
 * level. */
typedef struct kg_machine_kind {
  const char *triple, *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMRelocMode relocation;
  LLVMCodeModel model;
} kg_machine_kind;

typedef struct kg_machine kg_machine;
struct kg_machine {
  kg_machine *next; /* next idle machine */
  char *cpu, *features;
  LLVMCodeGenOptLevel level;
  LLVMTargetMachineRef machine;
  LLVMTargetDataRef layout;
};

typedef struct kg_machines {
  pthread_mutex_t mutex; /* protects the fields below */
  kg_machine *idle;
} kg_machines;

void kg_init_machines(kg_machines *machines);
void kg_free_machines(kg_machines *machines); /* all machines must be idle */
/* Returns an unused or a new machine, which the caller must return later. NULL means out of
 * memory. */
kg_machine *kg_take_machine(kg_machines *machines, const kg_machine_kind *kind);
void kg_return_machine(kg_machines *machines, kg_machine *machine);

/* Registers both targets and the handler for LLVM's fatal errors, once per process. Thread-safe. */
void kg_start_llvm(void);

/* Errors that LLVM has reported for one context. After reporting an error, LLVM continues and
 * returns success, so the caller must check this struct. */
typedef struct kg_llvm_errors {
  unsigned count;
  /* LLVM has reported a fatal error; the context's objects are in an unknown state, so they must be
   * leaked */
  bool is_fatal;
  bool has_externs; /* the module contains code of the application, which may be unsupported */
  char first[512];
  /* after emission: the total stack size of the functions in the modules that were passed to
   * kg_report_frames */
  uint64_t stack_bytes;
} kg_llvm_errors;

/* kg_enter_llvm must be called before, and kg_leave_llvm after, calls of LLVM functions that may
 * end the process. A fatal error between these two calls only makes the compilation fail. */
void kg_enter_llvm(kt_compilation *c, kg_llvm_errors *errors);
void kg_leave_llvm(void);

/* Returns an LLVM context whose diagnostic handler records errors in *errors. keeps_names: the
 * context keeps the names of values, which only a dump needs. */
LLVMContextRef kg_create_llvm_context(kg_llvm_errors *errors, bool keeps_names);
/* If there is an error, ends the compilation with errors->first. what: the stage, for the
 * message. */
void kg_check_llvm_errors(kt_compilation *c, const kg_llvm_errors *errors, const char *what);
/* If error is not NULL, ends the compilation with LLVM's message and frees the message. */
void kg_check_llvm_error(kt_compilation *c, LLVMErrorRef error, const char *what);

/* Size classes. For large functions, passes whose time grows quadratically are omitted, so that
 * compile time stays linear. */
typedef enum kg_module_size {
  KJ_SIZE_USUAL,
  /* a function has many instructions: the loop vectorizer compares all pairs of instructions in a
   * loop */
  KJ_SIZE_LONG,
  /* there are many basic blocks, so passes over loops and conditions, which query dominance for all
   * pairs of blocks, are too slow */
  KJ_SIZE_LARGE,
  /* there are so many blocks or instructions that even passes over single instructions are too
   * slow, because they visit all known conditions and chains of other values for each value */
  KJ_SIZE_HUGE
} kg_module_size;
kg_module_size kg_measure_module(LLVMModuleRef module);
kg_module_size kg_measure_function(LLVMValueRef function);
/* Returns whether LLVM does not change the function (optnone). Such a function does not count
 * toward its module's size. */
bool kg_is_settled(LLVMValueRef function);
/* plain.c: returns whether the module computes the same bits at all optimization levels, except for
 * the payloads of NaNs. */
bool kg_has_one_result(LLVMModuleRef module);
/* Returns whether a basic block has too many loads and stores for the scheduler. The scheduler
 * compares each of these accesses with all others, which would take most of the compile time. */
bool kg_is_dense(LLVMModuleRef module);
/* Returns whether a basic block uses a value too often for the scheduler of CPU code. At each use,
 * the scheduler visits all earlier uses of the value, which would take most of the compile time. */
bool kg_has_frequent_value(kj_arena *arena, LLVMModuleRef module);
/* Returns whether a basic block has too many addresses at non-constant distances for straight-line
 * strength reduction. This pass searches for addresses that differ by a multiple of a value. It
 * compares each address with all earlier addresses, which would take most of the compile time. */
bool kg_has_many_addresses(LLVMModuleRef module);
/* Returns whether a function has so many instructions that strength reduction and common
 * subexpression elimination in code generation would take most of the time. Strength reduction
 * compares all instructions that dominate each other. An optimizing assembler would also take most
 * of the time for such a function. */
bool kg_is_lengthy(LLVMModuleRef module);
/* Returns whether a basic block has so many instructions that the loop vectorizer would take most
 * of the time. For each instruction, the vectorizer determines the type and the uniformity by
 * visiting the operands. */
bool kg_has_long_block(LLVMModuleRef module);
/* Return the number of instructions. The functions can stop counting when the number exceeds
 * `most`. */
uint64_t kg_count_function(LLVMValueRef function, uint64_t most);
uint64_t kg_count_instructions(LLVMModuleRef module, uint64_t most);
/* Returns the width in bits of the widest vector that an instruction of the module produces, not
 * counting masks; 0 means that there are no vectors. */
uint32_t kg_measure_vectors(LLVMModuleRef module, LLVMTargetDataRef layout);
/* Runs a pipeline, given in LLVM's text form. Reports an error if the compilation exceeds a limit.
 * For a large module, the passes run one at a time, and the limits are checked between them. */
void kg_run_passes(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                   const char *pipeline, kg_llvm_errors *errors);
/* Runs a pipeline on a single function, without interruption. */
void kg_run_function_passes(kt_compilation *c, LLVMValueRef function, LLVMTargetMachineRef machine,
                            const char *pipeline, kg_llvm_errors *errors);
/* Calls `rewrite` for each instruction of the module. `rewrite` can insert code before the
 * instruction, replace it and erase it, and returns the next instruction to visit. */
void kg_rewrite_each(LLVMModuleRef module,
                     LLVMValueRef (*rewrite)(LLVMBuilderRef builder, LLVMValueRef instruction));
/* Replaces the instruction's uses, erases it, and returns the next instruction. */
LLVMValueRef kg_replace(LLVMValueRef instruction, LLVMValueRef by);
/* In builds with assertions, runs LLVM's verifier and reports the verifier's message as an internal
 * error. */
void kg_check_module(kt_compilation *c, LLVMModuleRef module);
/* Stores the module's text in code->data, which is allocated with malloc. */
void kg_take_module_text(kt_compilation *c, LLVMModuleRef module);
/* Makes emission add the size of each function's stack frame to kg_llvm_errors.stack_bytes. */
void kg_report_frames(LLVMContextRef context, LLVMModuleRef module);
/* Emits assembly or object code to code->data. Assembly is followed by a 0 byte. */
void kg_emit_module(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType type, kg_llvm_errors *errors);

/* A bitcode library in memory, of which only the functions that are called are linked. */
typedef struct kg_bitcode kg_bitcode;
/* Opens a library. If the file cannot be read or is not bitcode, returns NULL and sets *reason to a
 * static string. If `simplify` is not NULL, it is called when a function is linked for the first
 * time, with a module that contains this function and its dependencies. Later kernels link the
 * simplified module. */
kg_bitcode *kg_open_bitcode(const char *path, void (*simplify)(LLVMModuleRef module),
                            const char **reason);
void kg_close_bitcode(kg_bitcode *bitcode);
/* Links the functions that the module declares and that the library defines. */
void kg_link_bitcode(kt_compilation *c, kg_bitcode *bitcode, LLVMModuleRef module,
                     kg_llvm_errors *errors);

/* extern_code.c: links the LLVM IR that the application has bound to extern funcs of the
 * compilation. Returns false if no extern func has such code. Reports an error if the code is not
 * valid. */
bool kg_link_externs(kt_compilation *c, LLVMModuleRef module, kg_llvm_errors *errors);
/* Returns whether the compilation has an extern func with this name. */
bool kg_is_extern(const kt_compilation *c, const char *symbol);

#endif

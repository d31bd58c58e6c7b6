/* LLVM functions that the targets share: contexts whose errors become diagnostics, pass pipelines,
 * text of modules, bitcode libraries. */
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
 * idle machines are kept until the pool is freed. */

/* The parameters of a machine. Machines of one pool differ only in cpu, features and level. */
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
/* Returns an idle or a new machine, which the caller has to return; NULL means out of memory. */
kg_machine *kg_take_machine(kg_machines *machines, const kg_machine_kind *kind);
void kg_return_machine(kg_machines *machines, kg_machine *machine);

/* Registers both targets and the handler of LLVM's fatal errors, once in a process. Thread safe. */
void kg_start_llvm(void);

/* Errors that LLVM has reported for one context. After an error LLVM continues and returns success,
 * so the caller has to check this struct. */
typedef struct kg_llvm_errors {
  unsigned count;
  /* LLVM wanted to end the process; the state of the context's objects is unknown, so they must be
   * leaked */
  bool is_fatal;
  char first[512];
  /* total stack size of the functions that kg_report_frames was called for, after their emission */
  uint64_t stack_bytes;
} kg_llvm_errors;

/* Surround calls of LLVM that may end the process: the compilation fails instead. */
void kg_enter_llvm(kt_compilation *c, kg_llvm_errors *errors);
void kg_leave_llvm(void);

/* Returns a context with a diagnostic handler that records errors in *errors. keeps_names: keep
 * value names, which only a dump needs. */
LLVMContextRef kg_create_llvm_context(kg_llvm_errors *errors, bool keeps_names);
/* Fails the compilation with errors->first if there is an error. what: the stage, for the
 * message. */
void kg_check_llvm_errors(kt_compilation *c, const kg_llvm_errors *errors, const char *what);
/* Fails with LLVM's message if error is not NULL, and disposes the message. */
void kg_check_llvm_error(kt_compilation *c, LLVMErrorRef error, const char *what);

/* Size classes. Passes whose time grows quadratically are omitted for large functions, so that
 * compile time stays linear. */
typedef enum kg_module_size {
  KJ_SIZE_USUAL,
  /* many instructions in a function: the loop vectorizer compares all pairs of a loop */
  KJ_SIZE_LONG,
  /* many basic blocks: passes over loops and conditions query dominance for all pairs of blocks */
  KJ_SIZE_LARGE,
  /* so many blocks or instructions that even passes over single instructions are too slow: for each
   * value they look at all known conditions and at chains of other values */
  KJ_SIZE_HUGE
} kg_module_size;
kg_module_size kg_measure_module(LLVMModuleRef module);
kg_module_size kg_measure_function(LLVMValueRef function);
/* Returns whether LLVM leaves the function unchanged (optnone). Such a function does not count in
 * the size of its module. */
bool kg_is_settled(LLVMValueRef function);
/* plain.c: returns whether the module computes the same bits however much it is optimized, except
 * for the payloads of NaNs. */
bool kg_has_one_result(LLVMModuleRef module);
/* Returns whether a basic block has so many loads and stores that the scheduler, which compares
 * each with the others, would take most of the time. */
bool kg_is_dense(LLVMModuleRef module);
/* Returns whether a basic block uses a value so often that the scheduler of CPU code, which visits
 * all earlier uses of a value at each use, would take most of the time. */
bool kg_has_frequent_value(kj_arena *arena, LLVMModuleRef module);
/* Returns whether a block has so many addresses without constant distances that the search for
 * addresses that differ by a multiple of one value would take most of the time. The search compares
 * each address with all earlier ones. */
bool kg_has_many_addresses(LLVMModuleRef module);
/* Returns whether a function has so many instructions that strength reduction and common
 * subexpression elimination in code generation would take most of the time. Strength reduction
 * compares all instructions that dominate each other. An optimizing assembler does the same. */
bool kg_is_lengthy(LLVMModuleRef module);
/* Returns whether a basic block has so many instructions that the loop vectorizer would take most
 * of the time. It determines type and uniformity of each instruction by walking its operands. */
bool kg_has_long_block(LLVMModuleRef module);
/* Return the number of instructions. They may stop counting above `most`. */
uint64_t kg_count_function(LLVMValueRef function, uint64_t most);
uint64_t kg_count_instructions(LLVMModuleRef module, uint64_t most);
/* Returns the width in bits of the widest vectors, except masks, that instructions of the module
 * produce; 0 means none. */
uint32_t kg_measure_vectors(LLVMModuleRef module, LLVMTargetDataRef layout);
/* Runs a pipeline in LLVM's text form. Fails if a limit of the compilation is exceeded. For a large
 * module the passes run one by one, and the limits are checked between them. */
void kg_run_passes(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                   const char *pipeline, kg_llvm_errors *errors);
/* Runs a pipeline on one function in one step. */
void kg_run_function_passes(kt_compilation *c, LLVMValueRef function, LLVMTargetMachineRef machine,
                            const char *pipeline, kg_llvm_errors *errors);
/* Calls `rewrite` for each instruction of the module. `rewrite` may insert code before the
 * instruction, replace it and erase it. It returns the next instruction to visit. */
void kg_rewrite_each(LLVMModuleRef module,
                     LLVMValueRef (*rewrite)(LLVMBuilderRef builder, LLVMValueRef instruction));
/* Replaces and erases the instruction, and returns the next one. */
LLVMValueRef kg_replace(LLVMValueRef instruction, LLVMValueRef by);
/* Runs the verifier in builds with assertions, and reports its message as an internal error. */
void kg_check_module(kt_compilation *c, LLVMModuleRef module);
/* Stores the module as text in code->data, malloc'd. */
void kg_take_module_text(kt_compilation *c, LLVMModuleRef module);
/* Makes emission add the size of each function's frame to kg_llvm_errors.stack_bytes. */
void kg_report_frames(LLVMContextRef context, LLVMModuleRef module);
/* Emits assembly or object code to code->data. Assembly gets a terminating 0 byte. */
void kg_emit_module(kt_compilation *c, LLVMModuleRef module, LLVMTargetMachineRef machine,
                    LLVMCodeGenFileType type, kg_llvm_errors *errors);

/* A bitcode library in memory. Only the functions that are called are linked. */
typedef struct kg_bitcode kg_bitcode;
/* Opens a library. Returns NULL if the file cannot be read or is not bitcode; *reason is then a
 * static string. simplify (may be NULL) is called once for each function that is ever linked, with
 * a module of the function and its dependencies; later kernels link the simplified module. */
kg_bitcode *kg_open_bitcode(const char *path, void (*simplify)(LLVMModuleRef module),
                            const char **reason);
void kg_close_bitcode(kg_bitcode *bitcode);
/* Links the functions that the module declares and the library defines. */
void kg_link_bitcode(kt_compilation *c, kg_bitcode *bitcode, LLVMModuleRef module,
                     kg_llvm_errors *errors);

/* extern_code.c: links the LLVM IR that the application has bound to extern funcs of the
 * compilation. Returns false if there is none. Fails if the code is not valid. */
bool kg_link_externs(kt_compilation *c, LLVMModuleRef module, kg_llvm_errors *errors);
/* Returns whether an extern func of the compilation has this name. */
bool kg_is_extern(const kt_compilation *c, const char *symbol);

#endif

/* One compilation of a kernel: its request, the data that the steps share, the limits of its work,
 * and its errors' reports. */
#ifndef KJ_TYPING_COMPILATION_H
#define KJ_TYPING_COMPILATION_H

#include "compiler.h"
#include "ir/arithmetic.h"
#include "ir/module.h"

typedef struct kt_expr kt_expr;
typedef struct kt_stmt kt_stmt;
typedef struct kt_var kt_var;
typedef struct kt_instance kt_instance;

typedef KJ_LIST(kt_expr *) kt_exprs;
typedef KJ_LIST(kt_stmt *) kt_stmts;
typedef KJ_LIST(kt_var *) kt_vars;

/* ---- one compilation ---- */

/* Properties of the typed trees that passes have established (pass/passes.def). */
typedef enum kt_tree_state {
  KJ_TREE_TYPED = 1,    /* all instances exist */
  KJ_TREE_FIBERS = 2,   /* cpu_fibers, is_cooperative and has_cluster are set */
  KJ_TREE_CHECKED = 4,  /* is_checked and is_watched are set */
  KJ_TREE_FAILING = 8,  /* may_fail is set */
  KJ_TREE_THREADS = 16, /* the kernel consists of thread loops: THREADS and related statements */
  KJ_TREE_NARROW = 32   /* ranges and is_narrow are set */
} kt_tree_state;

/* The limits of a compilation, with a value for each row of <kjit/limits.def>. */
typedef enum kt_limit {
#define KJIT_ROW(name, field, value, text, unit, scale, what) KJ_LIMIT_##name,
#include <kjit/limits.def>
#undef KJIT_ROW
  KJ_LIMIT_COUNT
} kt_limit;

/* The limits of a compilation, and the resources that it has used. Files other than budget.c use
 * only the counts. */
typedef struct kt_budget {
  uint64_t limits[KJ_LIMIT_COUNT];
  uint64_t started_ns; /* processor time of this thread */
  uint64_t expressions, instances;
  uint32_t until_look; /* number of calls of kt_poll until the next check */
  const char *step;    /* the current step of the compilation, for error messages */
} kt_budget;

typedef KJ_LIST(kjit_module *) kt_builtin_code;

typedef struct kt_compilation kt_compilation;
struct kt_compilation {
  const kj_compile_request *request;
  kt_budget *budget; /* shared with the compilation of the kernel's unchecked version */
  const kjit_module *module;
  ki_types *types;
  kj_arena *arena; /* owns all data of this compilation */
  kj_diagnostics *diagnostics;
  /* kt_fail jumps here with KJ_JUMP_ERROR; if memory runs out, the arena jumps here with
   * KJ_JUMP_MEMORY */
  jmp_buf *on_failure;
  /* modules with the code of built-ins, which the compilation has parsed and destroys at its end;
   * shared with the compilation of the unchecked version */
  kt_builtin_code *builtin_code;
  uint32_t state; /* bits of kt_tree_state */
  /* instances[0] is the kernel; of all other instances, callees precede their callers, except in
   * recursion */
  KJ_LIST(kt_instance *) instances;
  /* the instance that is being inferred; error messages show its call chain */
  const kt_instance *chain;
  /* Output: properties of the generated code, for the runtime. Each property is set by the pass, or
   * by the part of lowering or emission, that determines it. */
  kj_code *code;
  /* minimum PTX version that the built-ins need; 0 means any; set by typing/rules_instruction.c */
  uint32_t least_ptx;
  uint32_t ptx;     /* PTX version of the generated code, set by target/nvptx.c */
  bool has_cluster; /* the kernel uses built-ins for clusters; set by pass/launch_needs.c */
  /* CPU: there is a barrier that only some threads in a block may reach; set by pass/simt.c */
  bool has_part_barrier;
  /* Set by inference: the name of the last barrier in control flow that can differ between threads.
   * It can also be the name of a called function that has a barrier. NULL means that there is no
   * such barrier. */
  const char *divergent_barrier;
  kj_location divergent_location;
  bool has_wraps; /* set by inference: some index counts from the end if it is negative */
  /* output of lowering for kj_code.facts: the assumptions about the arguments that the code relies
   * on */
  bool used_aligned16, used_rows_aligned16, used_offsets32, used_grid32, used_disjoint, used_same,
    used_large;
  /* Set by pass/prove.c, for the CPU only. `hoisted` is a list of conditions on the kernel's
   * parameters and the block. In a block that satisfies the conditions, the hoisted checks cannot
   * fail. Such a block runs `unchecked`, the same kernel without these checks. NULL means that
   * there is no such kernel. */
  kt_exprs hoisted;
  bool drops_hoisted; /* this is the compilation of the kernel without the hoisted checks */
  kt_compilation *unchecked;
};

/* Reports an error at a location. Does not return. Adds notes with the chain of calls that led to
 * the current instance. */
_Noreturn void kt_fail(kt_compilation *c, kj_location location, kjit_status status,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Like kt_fail, with the format's arguments as a list. */
_Noreturn void kt_fail_list(kt_compilation *c, kj_location location, kjit_status status,
                            const char *format, va_list list);
/* Like kt_fail, with an error code. */
_Noreturn void kt_fail_code(kt_compilation *c, kj_location location, kjit_status status,
                            kjit_error_code code, const char *format, ...)
  __attribute__((format(printf, 5, 6)));
/* Like kt_fail, for a value of type `given` where a number is expected. If `given` is an array
 * type, the error has another code. */
_Noreturn void kt_fail_number(kt_compilation *c, kj_location location, kjit_type given,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Like kt_fail_code, for a type conflict between two locations. `note` is the message for the
 * second location. */
_Noreturn void kt_fail_twice(kt_compilation *c, kj_location location, kj_location other,
                             kjit_error_code code, const char *note, const char *format, ...)
  __attribute__((format(printf, 6, 7)));
void kt_warn(kt_compilation *c, kj_location location, kjit_severity severity, const char *format,
             ...) __attribute__((format(printf, 4, 5)));

/* ---- limits: budget.c ---- */

void kt_open_budget(kt_budget *budget, const kj_compile_request *request);
/* Reports the error INTERRUPTED if the compilation was interrupted, or LIMIT if its time is used
 * up. location: the source that is being compiled. kt_poll calls kt_look in only one of 64 calls.
 * It is cheap enough to be called for each statement and expression. */
void kt_look(kt_compilation *c, kj_location location);
static inline void kt_poll(kt_compilation *c, kj_location location)
{
  enum { CALLS = 64 };
  if (c->budget->until_look-- != 0) return;
  c->budget->until_look = CALLS;
  kt_look(c, location);
}
/* Begins a step of the compilation, and calls kt_look. `step` is the step name in messages. */
void kt_begin_step(kt_compilation *c, const char *step);
/* Notifies the observer of the compilation that a stage begins. */
void kt_begin_stage(const kt_compilation *c, kjit_stage stage);
/* Reports an error if `needed` exceeds the limit. `format` describes the object that is too
 * large. */
void kt_check_limit(kt_compilation *c, kt_limit limit, uint64_t needed, kj_location location,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Reports that the arena would exceed its limit, and returns. */
void kt_report_memory_limit(kt_compilation *c);
/* Returns the source text of a type, for messages. The text is in the arena. */
const char *kt_type_text(kt_compilation *c, kjit_type type);

/* ---- type inference ---- */

/* lib/typing/infer.c: infers the kernel of the request and all functions that it calls. Reports
 * errors with kt_fail. */
void kt_infer(kt_compilation *c);
/* lib/typing/typed_printer.c: prints the typed IR, for --emit typed. */
void kt_print_typed(const kt_compilation *c, kj_buffer *buffer);
/* lib/typing/typed_verifier.c: checks the invariants of the typed IR between passes. It also checks
 * that the results of a pass are present only if c->state contains the property that the pass
 * establishes. A violation is a bug in kjit. It ends the compilation with an "internal error" at
 * its location. */
void kt_verify_typed(kt_compilation *c);
/* lib/typing/infer_kernel.c: kt_most_shared_bytes returns the maximum number of bytes of shared
 * memory in a block. kt_target_text returns the target name for messages about this limit. */
uint32_t kt_most_shared_bytes(const kj_target *target);
const char *kt_target_text(const kt_compilation *c);

#endif

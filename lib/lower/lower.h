/* Functions that lower the typed kernel IR to LLVM IR for all targets: entry points, checks,
 * memory, statements, loops and kernel parameters. */
#ifndef KJ_LOWER_LOWER_H
#define KJ_LOWER_LOWER_H

#include "lower/lowering.h"
#include "lower/values.h"

/* ---- lower_module.c: entry points ---- */

/* Lowers the kernel and the functions that it needs into l->module. The caller must have set the
 * first group of fields of l; all other fields must be zero. Reports errors with kt_fail.
 * kl_end_lowering must be called afterwards, also after an error, because it frees the builder. */
void kl_lower(kl_lowering *l);
void kl_end_lowering(kl_lowering *l);
/* Copies the tables of the unchecked version back to the lowering of the checked version. Call it
 * after lowering the unchecked version, and before kl_finish_code for the checked version. */
void kl_give_tables_back(kl_lowering *l);
/* Sets the fields of c->code that are known at the end of lowering: strings, parameters, stack
 * size. */
void kl_finish_code(kl_lowering *l);
/* For begin_kernel: creates the entry block of l->function and the block in which the code
 * starts. */
void kl_begin_body(kl_lowering *l);
/* lower_call.c: kl_plan_calls decides which instances are inlined, and must be called before any
 * function is lowered. kl_lower_pending lowers the bodies of the other instances. */
void kl_plan_calls(kl_lowering *l);
void kl_lower_pending(kl_lowering *l);
bool kl_is_recursive(kl_lowering *l, const kt_instance *instance);
/* Returns the number of bytes of stack that recursive calls may use. */
uint32_t kl_recursion_bytes(const kl_lowering *l);
bool kl_is_inlined(kl_lowering *l, const kt_instance *instance);
/* abi.c: kl_lower_entry lowers the func of the request as a C function, in a frame that the caller
 * has made. kl_call_extern calls an extern func. */
void kl_lower_entry(kl_lowering *l);
LLVMValueRef kl_call_extern(kl_lowering *l, const kt_expr *expr);
void kl_enter_kernel(kl_lowering *l);           /* makes the kernel's frame */
void kl_bind_kernel_parameters(kl_lowering *l); /* call it after begin_kernel */
_Noreturn void kl_lower_unsupported(kl_lowering *l, kj_location location, const char *what);

/* ---- memory.c: layout of dynamic shared memory ---- */

/* Called before begin_kernel. static_limit: number of bytes of static arrays that can be in static
 * shared memory. */
void kl_plan_shared(kl_lowering *l, uint64_t static_limit);
/* Returns whether a KJ_V_SHARED variable is in dynamic shared memory. */
bool kl_is_dynamic_shared(kl_lowering *l, const kt_var *var);
/* Returns the number of an array, from 0, among the arrays in dynamic shared memory that do not
 * overlap. */
size_t kl_dynamic_number(kl_lowering *l, const kt_var *var);
/* Returns the variable's offset in bytes from the start of dynamic shared memory, an i64. */
LLVMValueRef kl_dynamic_offset(kl_lowering *l, const kt_var *var);
/* Returns the array at a pointer with its extents and strides. Does not set the extent if the
 * launch determines the array size. */
kl_array_value kl_dynamic_array(kl_lowering *l, const kt_var *var, LLVMValueRef pointer);
/* Returns the number of elements, an i64, of the array whose size the launch determines. */
LLVMValueRef kl_own_extent(kl_lowering *l, uint32_t element_bytes);

/* ---- check.c: failing threads ---- */

typedef struct kl_failure {
  kj_failure_kind kind;
  /* the failure must never happen, because its check was proved; set for KJ_CHECK_ASSERTED */
  bool is_asserted;
  kj_location location;
  const char *message; /* may be NULL */
  unsigned count;
  kjit_type types[2];
  LLVMValueRef values[2]; /* in register type */
} kl_failure;

/* Adds a parameter for the failure record to kernels that can fail. */
void kl_plan_failures(kl_lowering *l);
/* lower_print.c: binds the parameters for failures and for print in the kernel's body */
void kl_bind_hidden_parameters(kl_lowering *l);
/* Builds code that reports the failure and leaves the kernel. It ends the current basic block. */
void kl_build_failure(kl_lowering *l, const kl_failure *failure);
/* Marks the successor to which a conditional branch nearly always goes. */
void kl_set_likely(kl_lowering *l, LLVMValueRef branch, bool is_first);
void kl_fail_if(kl_lowering *l, LLVMValueRef condition, const kl_failure *failure);
void kl_lower_fail(kl_lowering *l, const kt_stmt *stmt);
/* value and extent: i64 */
void kl_check_index(kl_lowering *l, kl_check check, const kt_expr *index, LLVMValueRef value,
                    LLVMValueRef extent);
/* Checks all indices of an access in order. */
void kl_check_indices(kl_lowering *l, kl_check check, const kt_exprs *indices,
                      LLVMValueRef const *values, LLVMValueRef const *extents);
typedef struct kl_checked_slice {
  kj_location location;
  LLVMValueRef first, count, step, extent; /* i64; step NULL means 1 */
} kl_checked_slice;
void kl_check_slice(kl_lowering *l, const kl_checked_slice *slice);
/* Checks the divisor of x / y. Emits no code if the node is not checked. */
void kl_check_divisor(kl_lowering *l, const kt_expr *expr, kjit_type type, LLVMValueRef x,
                      LLVMValueRef y);

/* ---- poll.c ---- */

/* Returns whether there is a failure record, which is needed if a thread can fail or be
 * interrupted. */
bool kl_has_record(const kl_lowering *l);
void kl_plan_interrupts(kl_lowering *l);
/* Polls for interrupts at the end of an iteration whose cost is `cost`; if the launch has been
 * interrupted, the thread leaves the kernel here. Emits no code in the short version of a loop. */
void kl_poll(kl_lowering *l, kj_location location, uint32_t cost);
/* Like kl_poll, for a thread that waits for other threads. Also emits code in the short version of
 * a loop. */
void kl_poll_waiting(kl_lowering *l, kj_location location, uint32_t cost);
/* CPU: count the iterations of a loop that only waits. After a large number of iterations, the
 * thread for which it waits cannot be running, and the waiting thread fails. */
LLVMValueRef kl_begin_turns(kl_lowering *l);
void kl_count_turn(kl_lowering *l, LLVMValueRef turns, kj_location location);
/* Emits a poll for interrupts at the start of an LLVM function. */
void kl_poll_entry(kl_lowering *l, const kt_instance *instance);
/* Returns the number of iterations of a loop between two polls. 1 means that the caller calls
 * kl_poll in each iteration, and 0 that the loop never polls. */
uint32_t kl_chunk_of(const kl_lowering *l, const kt_stmt *loop);
/* A loop that is lowered twice: a short version, which does not poll, and a long one, which polls.
 * The caller begins the short version, lowers the loop, begins the long version, lowers the loop
 * again, and ends the long version.
 *
 * is_short is an i1 that selects the short version, for about 2^kl_few_iterations iterations or
 * fewer. spent is an i32: the cost of the short version's iterations in expressions. If spent is
 * NULL, kjit estimates the cost. */
typedef struct kl_polled_twice {
  const kt_stmt *loop;
  LLVMBasicBlockRef is_long, end;
} kl_polled_twice;
bool kl_is_polled_twice(const kl_lowering *l, const kt_stmt *loop);
unsigned kl_few_iterations(const kl_lowering *l, const kt_stmt *loop);
void kl_begin_short(kl_lowering *l, kl_polled_twice *t, LLVMValueRef is_short, LLVMValueRef spent);
/* Begins the short version if the loop has few iterations. count is the maximum number of
 * iterations. The computation of count may overflow only if the loop has no iterations. */
void kl_begin_short_of(kl_lowering *l, kl_polled_twice *t, LLVMValueRef count);
void kl_begin_long(kl_lowering *l, kl_polled_twice *t);
void kl_end_long(kl_lowering *l, kl_polled_twice *t);
/* A loop over chunks in the range [first, stop). Call kl_begin_chunks. Then build a loop that runs
 * from .first to .stop and branches to .end after its last iteration. Finally call kl_end_chunks in
 * the block .end, with the .first of the next chunk. `leave` is the block after all chunks. span is
 * a chunk's size in units of the counter. The caller must set is_signed and other_type before the
 * first call. other_type is the type of .other, another value that is passed from chunk to chunk;
 * NULL means that there is no such value. kl_end_chunks returns the block from which the next chunk
 * begins. */
typedef struct kl_chunks {
  bool is_signed;
  LLVMTypeRef other_type;
  LLVMBasicBlockRef head, end, leave;
  LLVMValueRef first, stop, all, other;
} kl_chunks;
void kl_begin_chunks(kl_lowering *l, kl_chunks *chunks, LLVMValueRef first, LLVMValueRef stop,
                     uint64_t span, LLVMBasicBlockRef leave);
LLVMBasicBlockRef kl_end_chunks(kl_lowering *l, kl_chunks *chunks, LLVMValueRef at,
                                kj_location location);

/* ---- asserted_facts.c: assertions of the facts that the code relies on ---- These functions emit
 * no code if assertions are off. */

bool kl_asserts_facts(const kl_lowering *l);
/* Asserts a fact. holds is an i1. value is an i64 that the error message shows if the fact is not
 * true. fact is a clause such as "a value is in 0..9". */
void kl_assert_fact(kl_lowering *l, LLVMValueRef holds, LLVMValueRef value, const char *fact);
/* Attaches the statement's location to the access as metadata, for assertions that are added
 * later. */
#define KJ_PLACE_METADATA "kjit.place"
void kl_note_place(kl_lowering *l, LLVMValueRef access);
/* Asserts the range of an integer in register form. An i64 value can be passed as an i32. */
void kl_assert_range(kl_lowering *l, kt_interval range, kjit_type type, LLVMValueRef value);
/* Asserts the relations between arguments and the grid. Call it after the kernel's parameters are
 * bound. */
void kl_assert_arguments(kl_lowering *l);
/* Asserts that an access is aligned and that it is inside of the argument. Call it before the
 * access. */
void kl_assert_access(kl_lowering *l, LLVMValueRef pointer, uint32_t bytes, uint32_t alignment,
                      uint32_t object);

/* ---- cpu_speculate.c: in iterations with l->bad_divisor ---- */

void kl_note_bad_divisor(kl_lowering *l, LLVMValueRef is_zero);
/* Call this before a store. In an iteration with a zero divisor, the generated code skips the store
 * and continues in the returned block. Returns NULL if the current code is not part of a
 * speculative iteration. */
LLVMBasicBlockRef kl_skip_if_bad(kl_lowering *l);

/* ---- lower_print.c ---- */

/* kl_prints returns whether an instance prints. kl_plan_prints adds the parameter that print
 * needs. */
bool kl_prints(kt_instance *instance);
void kl_plan_prints(kl_lowering *l);
void kl_lower_print(kl_lowering *l, const kt_stmt *stmt);

/* ---- check.c: CPU only ---- */

bool kl_is_watched(const kl_lowering *l);
void kl_watch_start_of_block(kl_lowering *l);
/* Calls KJ_WATCH_BARRIER_FUNCTION or KJ_WATCH_WARPS_FUNCTION. threads: the address of an array with
 * an i32 for each thread, or NULL. */
void kl_watch_synchronization(kl_lowering *l, const char *function, LLVMValueRef threads);
/* Monitors an access to an element, for nodes with is_watched. Call it before the access. how:
 * KJ_WATCH_READ, KJ_WATCH_WRITE or KJ_WATCH_ATOMIC. */
void kl_watch_access_at(kl_lowering *l, kj_location location, const kl_array_value *array,
                        LLVMValueRef pointer, uint32_t how);

/* ---- memory.c: loads and stores with their metadata ---- */

/* Load and store an element in register form. */
LLVMValueRef kl_load_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                             uint32_t alignment);
void kl_store_element(kl_lowering *l, const kl_array_value *array, LLVMValueRef pointer,
                      LLVMValueRef value, uint32_t alignment);
/* Adds metadata to a load from an array argument or from unknown memory. */
void kl_annotate_load(kl_lowering *l, LLVMValueRef load, uint32_t object);
/* Adds alias.scope, noalias and parallel loop metadata to an instruction, which can have been built
 * elsewhere. */
void kl_annotate_access(kl_lowering *l, LLVMValueRef instruction, uint32_t object);
/* Adds the metadata of kl_annotate_access to an atomic, without the id of the parallel loop,
 * because iterations depend on each other through atomics. If all accesses of a loop had this id,
 * the vectorizer would replace atomic accesses by plain ones. */
void kl_annotate_atomic(kl_lowering *l, LLVMValueRef instruction, uint32_t object);
/* Get and set a variable's value. The variable is a scalar or tuple, in a register, in memory or in
 * a slot. */
LLVMValueRef kl_get_variable(kl_lowering *l, const kt_var *var);
void kl_set_variable(kl_lowering *l, const kt_var *var, LLVMValueRef value);
/* for a narrow variable: the i32 itself */
LLVMValueRef kl_get_variable32(kl_lowering *l, const kt_var *var);
/* kl_get_array returns the array of a storage variable, a parameter or a let. kl_set_array binds an
 * array to a variable. */
kl_array_value kl_get_array(kl_lowering *l, const kt_var *var);
void kl_set_array(kl_lowering *l, const kt_var *var, const kl_array_value *array);
/* Returns the address of element 0 of a KJ_V_CONST variable, which is a constant global
 * variable. */
LLVMValueRef kl_constant_pointer(kl_lowering *l, const kt_var *var);
/* Return a new alias scope domain, and a new scope. Both are distinct nodes. */
LLVMMetadataRef kl_make_domain(kl_lowering *l, const char *name);
LLVMMetadataRef kl_make_scope(kl_lowering *l, LLVMMetadataRef domain, const char *name);

/* ---- statement.c, loop.c ---- */

void kl_lower_stmts(kl_lowering *l, const kt_stmts *stmts);
/* Lowers a STORE whose value is already lowered. */
void kl_lower_store_of(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef value);
void kl_lower_stmt(kl_lowering *l, const kt_stmt *stmt);
void kl_lower_while(kl_lowering *l, const kt_stmt *stmt);
void kl_lower_for(kl_lowering *l, const kt_stmt *stmt);
/* Lowers a FOR, GRID_FOR or BLOCK_FOR statement, in two versions if pass/loop_versions.c has
 * decided so. */
void kl_lower_loop(kl_lowering *l, const kt_stmt *loop);

/* A counted loop, whose body the caller builds: for (i = first; i < stop; i += step). step must be
 * positive, and i + step must not overflow as an unsigned number. kl_begin_loop moves the builder
 * into the body; kl_end_loop moves it after the loop. `id` holds the loop's properties. */
typedef struct kl_counted_loop {
  kl_loop loop; /* continue branches to next, and break to leave */
  LLVMBasicBlockRef header;
  LLVMValueRef counter, step;
  LLVMMetadataRef id;
  /* set by the caller: the statement for which each iteration polls; NULL means that the iterations
   * do not poll */
  const kt_stmt *polled;
  /* set by the caller: the counter is signed and does not overflow as a signed number either */
  bool is_signed;
} kl_counted_loop;
void kl_begin_loop(kl_lowering *l, kl_counted_loop *loop, LLVMValueRef first, LLVMValueRef stop,
                   LLVMValueRef step, const char *name);
void kl_end_loop(kl_lowering *l, kl_counted_loop *loop);

/* ---- grouping.c ---- */

/* How a thread processes adjacent elements in a range at once. */
typedef struct kl_grouping {
  uint32_t count; /* number of elements in a group; 1 means that the loop is not vectorized */
  bool is_reduction, has_branches;
  const kt_expr **loads; /* for each argument, the load at the loop variable */
  size_t load_count;
} kl_grouping;
kl_grouping kl_choose_grouping(kl_lowering *l, const kt_stmt *stmt);

/* ---- strided_range.c: grid_range and block_range over numbered threads ---- */

/* Lowers a range with any number of dimensions: the code visits the elements that belong to thread
 * `rank` of `count` threads. rank and count have the same type: i64, or i32 if they are below
 * 2^31. */
void kl_lower_strided_range(kl_lowering *l, const kt_stmt *stmt, LLVMValueRef rank,
                            LLVMValueRef count);

/* ---- parameter.c ---- */

/* Sets l->uses: the extents, strides and pointers that the kernel needs, and the arguments that it
 * writes. */
void kl_find_uses(kl_lowering *l);
/* Sets l->uses and l->parameters. */
void kl_plan_parameters(kl_lowering *l);
/* Maximum size in bytes of all parameters, including those that the compiler adds. The larger limit
 * is that of the PTX ISA for sm_70 and later, since PTX 8.1. kl_check_parameters checks the size
 * when all parameters are planned. */
enum {
  KJ_SMALL_PARAMETER_BYTES = 4352,
  KJ_LARGE_PARAMETER_BYTES = 32764,
  KJ_LARGE_PARAMETER_PTX = 81
};
void kl_check_parameters(kl_lowering *l);
/* Appends a parameter with the given alignment. Returns the parameter's offset in bytes. */
uint32_t kl_add_parameter(kl_lowering *l, kj_parameter parameter, kjit_type type,
                          uint32_t alignment);

/* ---- built-ins: kl_lower_<lower> of builtins.def ---- */

/* Calls target->native. Returns NULL if the target does not have this function. */
LLVMValueRef kl_try_native(kl_lowering *l, const char *name, uint32_t least_arch,
                           LLVMValueRef *args, unsigned count);

typedef LLVMValueRef (*kl_lower_builtin)(kl_lowering *l, const kt_expr *expr);
#define X(id, name, least, most, rule, lower, operation, scope, needs, flags, aliases) \
  LLVMValueRef kl_lower_##lower(kl_lowering *l, const kt_expr *expr);
#include "ir/builtins.def"
#undef X
extern const kl_lower_builtin kl_lower_table[KJ_BUILTIN_COUNT];

#endif

/* The cache of calls: keys, and the steps that are kept for each key. */
#ifndef KA_KEPT_CALL_H
#define KA_KEPT_CALL_H

#include "algorithm/algorithm.h"

enum { KA_MOST_KEPT = 128 };
/* The kept calls of a context. The mutex of the context's cache of kernels protects them. */
typedef struct ka_kept_calls {
  size_t count;
  uint64_t uses, hashes[KA_MOST_KEPT];
  ka_kept *items[KA_MOST_KEPT];
} ka_kept_calls;

/* The key of a kept call. `words` has everything that the steps depend on; `arrays` has the arrays,
 * whose addresses can differ between calls with the same key. */
enum { KA_KEY_WORDS = 448, KA_KEY_ARRAYS = 24, KA_KEY_FUNCTIONS = 24 };
typedef struct ka_array_input {
  kjit_arg argument;
  uint64_t address, low, high;
} ka_array_input;
typedef struct ka_key {
  uint64_t hash;
  size_t count, array_count, function_count;
  bool is_complete;
  ka_array_input arrays[KA_KEY_ARRAYS];
  kjit_function *functions[KA_KEY_FUNCTIONS];
  uint64_t words[KA_KEY_WORDS];
} ka_key;

static inline bool ka_is_array(const kjit_arg *argument)
{
  return argument->kind == KJIT_ARG_ARRAY || argument->kind == KJIT_ARG_TENSOR;
}

/* Returns whether two arguments pass the same object with the same kind, access and element type. A
 * program can pass one tensor with two element types. */
static inline bool ka_is_same_array(const kjit_arg *a, const kjit_arg *b)
{
  return a->kind == b->kind && a->access == b->access && a->type == b->type &&
         a->value.address == b->value.address;
}

/* call_key.c: makes a call's key. Returns false if such calls are not kept. */
bool ka_make_key(ka_call *call, ka_build *build, const ka_inputs *inputs, ka_key *key);
/* Adds the steps and the temporary storage of the kept call with this key, with the arrays of this
 * call. Returns false if there is no such kept call. */
bool ka_take_kept(ka_call *call, const ka_key *key);
/* Returns whether the call's temporary storage will be in the state that the next call of this kind
 * needs. Called after all steps are queued. */
bool ka_leaves_work(ka_call *call);
/* Keeps the steps and temporary storage that build has added. Called before temporary storage is
 * allocated. */
void ka_keep_call(ka_call *call, const ka_key *key);
/* For assertions: returns whether build has added the same steps that ka_take_kept would add. */
bool ka_agrees_with_kept(ka_call *call, const ka_key *key);
void ka_release_kept(ka_kept *kept);
/* Removes the kept calls that launch a kernel of the module, or all kept calls if module is NULL.
 * Stores them in `gone`, and the caller releases them. Returns their number. The caller holds the
 * mutex. */
size_t ka_forget_kept(ka_kept_calls *calls, const kjit_module *module, ka_kept **gone);
/* kernel_cache.c */
ka_kept_calls *ka_lock_kept(kjit_context *context);
void ka_unlock_kept(kjit_context *context);

#endif

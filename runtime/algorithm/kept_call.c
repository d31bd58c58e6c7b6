/* Caches the steps of earlier calls. A repeated call, possibly with other arrays, would spend most
 * of its host time on reading its operands, choosing an algorithm and writing kernel sources,
 * although the steps are the same each time. So kjit keeps the steps of a call under a key, and a
 * later call with the same key only replaces the arrays in these steps.
 *
 * The key (call_key.c) contains everything that the steps depend on. Builds with assertions build
 * the steps of each call again and compare them. The steps of a call that fails are never kept, so
 * a call whose key is found needs no checks of its arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "algorithm/kept_call.h"
#include "code/specialization.h"
#include "ir/context.h"

/* ---- kept calls ---- */

/* The source of a step's argument. ITSELF: the argument is stored. INPUT, VIEW, WORK: the index of
 * the call's input array, view or block of temporary storage is stored, and the argument is set for
 * each call. */
typedef enum kept_source { KEPT_ITSELF, KEPT_INPUT, KEPT_VIEW, KEPT_WORK } kept_source;

typedef struct kept_argument {
  kjit_arg argument;
  kept_source source;
  uint32_t index;
} kept_argument;

typedef struct kept_view {
  ka_view view; /* base and made are set for each call */
  uint32_t input;
} kept_view;

/* LEAVES_WORK: the kernels always leave temporary storage in the state that the next call needs.
 * MAY_FAIL: they leave it in another state if a thread fails. */
enum { NOT_KNOWN, LEAVES_WORK, MAY_FAIL };

struct ka_kept {
  _Atomic uint32_t references;
  _Atomic int leaves_work;
  uint64_t last_use;
  uint64_t number; /* unique among all kept calls of the context */
  kjit_device *device;
  uint64_t *words;
  ka_work *works;
  kept_view *views;
  ka_step *steps;           /* steps without arguments; their modules are retained */
  kept_argument *arguments; /* the arguments of all steps in sequence */
  kjit_module **modules;    /* modules of the key's funcs; retained, so that no new func gets the
                             * address of one of these funcs */
  size_t word_count, work_count, view_count, step_count, module_count;
  _Alignas(max_align_t) char memory[];
};

void ka_release_kept(ka_kept *kept)
{
  KJ_ASSERT(atomic_load(&kept->references));
  kj_assert_no_locks(); /* modules are released, which must not happen under a lock */
  if (atomic_fetch_sub(&kept->references, 1) != 1) return;
  for (size_t i = 0; i < kept->step_count; i++) kjit_release_module(kept->steps[i].module);
  for (size_t i = 0; i < kept->module_count; i++) kjit_release_module(kept->modules[i]);
  free(kept);
}

/* ---- keeping ---- */

static bool find_input(const ka_key *key, const kjit_arg *argument, uint32_t *index)
{
  for (*index = 0; *index < key->array_count; ++*index)
    if (ka_is_same_array(&key->arrays[*index].argument, argument)) return true;
  return false;
}

/* Finds the input array on which a view is based. For a view of a view, this is the array at the
 * end of the chain of views. The view must begin at this array's address. */
static bool find_base(const ka_call *call, const ka_key *key, const ka_view *view, uint32_t *index)
{
  const kjit_arg *base = &view->base;
  for (size_t i = call->viewed.count; i-- > 0;)
    if (ka_is_same_array(&call->viewed.items[i].made, base)) base = &call->viewed.items[i].base;
  return find_input(key, base, index);
}

/* Records an argument's origin. Returns false if a later call could not supply this argument. */
static bool find_source(const ka_call *call, const ka_key *key, const kjit_arg *argument,
                        kept_argument *kept)
{
  *kept = (kept_argument){ .argument = *argument };
  if (!argument->kind) {
    kept->source = KEPT_WORK;
    kept->index = (uint32_t)argument->value.u;
    return true;
  }
  if (!ka_is_array(argument))
    return argument->kind == KJIT_ARG_VALUE || argument->kind == KJIT_ARG_NUMBER;
  kept->argument.value.address = NULL;
  for (uint32_t i = 0; i < call->viewed.count; i++)
    if (ka_is_same_array(&call->viewed.items[i].made, argument)) {
      kept->source = KEPT_VIEW;
      kept->index = i;
      return true;
    }
  kept->source = KEPT_INPUT;
  return find_input(key, argument, &kept->index);
}

static char *cut(char **at, size_t count, size_t size_bytes)
{
  const size_t alignment = _Alignof(max_align_t);
  char *piece = *at;
  *at += (count * size_bytes + alignment - 1) / alignment * alignment;
  return piece;
}

static char *divide(const ka_call *call, const ka_key *key, size_t argument_count, ka_kept *kept,
                    char *at)
{
  kept->words = (uint64_t *)cut(&at, key->count, sizeof *kept->words);
  kept->works = (ka_work *)cut(&at, call->works.count, sizeof *kept->works);
  kept->views = (kept_view *)cut(&at, call->viewed.count, sizeof *kept->views);
  kept->steps = (ka_step *)cut(&at, call->steps.count, sizeof *kept->steps);
  kept->arguments = (kept_argument *)cut(&at, argument_count, sizeof *kept->arguments);
  kept->modules = (kjit_module **)cut(&at, key->function_count, sizeof *kept->modules);
  return at;
}

/* Copies the steps of a call, so that later calls can repeat them. Returns NULL if out of memory,
 * or if a later call could not repeat these steps. */
static ka_kept *make_kept(const ka_call *call, const ka_key *key)
{
  size_t argument_count = 0;
  ka_kept none;
  for (size_t i = 0; i < call->steps.count; i++) argument_count += call->steps.items[i].count;
  char *start = none.memory, *end = divide(call, key, argument_count, &none, start);
  ka_kept *kept = calloc(1, sizeof *kept + (size_t)(end - start));
  if (!kept) return NULL;
  char *given = divide(call, key, argument_count, kept, kept->memory);
  KJ_ASSERT(given - kept->memory == end - start);
  (void)given;
  bool is_whole = true;
  for (size_t i = 0; i < call->viewed.count; i++) {
    kept->views[i].view = call->viewed.items[i];
    is_whole = is_whole && find_base(call, key, &call->viewed.items[i], &kept->views[i].input);
  }
  kept_argument *next = kept->arguments;
  for (size_t i = 0; i < call->steps.count; i++)
    for (size_t j = 0; j < call->steps.items[i].count; j++, next++)
      is_whole = is_whole && find_source(call, key, &call->steps.items[i].arguments[j], next);
  KJ_ASSERT(next == kept->arguments + argument_count);
  if (!is_whole) {
    free(kept);
    return NULL;
  }
  atomic_store(&kept->references, 1);
  kept->device = call->device;
  memcpy(kept->words, key->words, key->count * sizeof *key->words);
  if (call->works.count)
    memcpy(kept->works, call->works.items, call->works.count * sizeof *kept->works);
  for (size_t i = 0; i < call->steps.count; i++) {
    kept->steps[i] = call->steps.items[i];
    kept->steps[i].arguments = NULL;
    (void)kjit_retain_module(kept->steps[i].module);
  }
  for (size_t i = 0; i < key->function_count; i++)
    kept->modules[i] = kjit_retain_module(((const ki_decl *)key->functions[i])->function->module);
  kept->word_count = key->count;
  kept->work_count = call->works.count;
  kept->view_count = call->viewed.count;
  kept->step_count = call->steps.count;
  kept->module_count = key->function_count;
  return kept;
}

/* ---- the table, protected by the mutex ---- */

/* Checks that each item has a reference, a valid number and its key's hash. */
static void check_kept(const ka_kept_calls *calls)
{
  KJ_ASSERT(calls->count <= KA_MOST_KEPT);
  for (size_t i = 0; KJ_HAS_ASSERTIONS && i < calls->count; i++) {
    const ka_kept *kept = calls->items[i];
    KJ_ASSERT(atomic_load(&kept->references) && kept->last_use <= calls->uses);
    KJ_ASSERT(kept->number && kept->number <= kept->last_use);
    KJ_ASSERT(calls->hashes[i] == XXH3_64bits(kept->words, kept->word_count * sizeof *kept->words));
  }
}

static ka_kept *find_kept(const ka_kept_calls *calls, const ka_key *key)
{
  for (size_t i = 0; i < calls->count; i++) {
    ka_kept *kept = calls->items[i];
    if (calls->hashes[i] == key->hash && kept->word_count == key->count &&
        !memcmp(kept->words, key->words, key->count * sizeof *key->words))
      return kept;
  }
  return NULL;
}

static ka_kept *add_kept(ka_kept_calls *calls, uint64_t hash, ka_kept *kept)
{
  size_t place = calls->count;
  ka_kept *gone = NULL;
  if (place < KA_MOST_KEPT) calls->count++;
  else {
    place = 0;
    for (size_t i = 1; i < KA_MOST_KEPT; i++)
      if (calls->items[i]->last_use < calls->items[place]->last_use) place = i;
    gone = calls->items[place];
  }
  kept->last_use = kept->number = ++calls->uses;
  calls->hashes[place] = hash;
  calls->items[place] = kept;
  check_kept(calls);
  return gone;
}

static bool has_module(const ka_kept *kept, const kjit_module *module)
{
  for (size_t i = 0; i < kept->step_count; i++)
    if (kept->steps[i].module == module) return true;
  return false;
}

size_t ka_forget_kept(ka_kept_calls *calls, const kjit_module *module, ka_kept **gone)
{
  size_t count = 0, left = 0;
  for (size_t i = 0; i < calls->count; i++) {
    ka_kept *kept = calls->items[i];
    if (!module || has_module(kept, module)) gone[count++] = kept;
    else {
      calls->hashes[left] = calls->hashes[i];
      calls->items[left++] = kept;
    }
  }
  KJ_ASSERT(count <= KA_MOST_KEPT);
  calls->count = left;
  check_kept(calls);
  return count;
}

void ka_keep_call(ka_call *call, const ka_key *key)
{
  ka_kept *made = call->steps.count ? make_kept(call, key) : NULL, *gone = made;
  if (!made) return;
  ka_kept_calls *calls = ka_lock_kept(call->context);
  if (!find_kept(calls, key)) gone = add_kept(calls, key->hash, made);
  ka_unlock_kept(call->context);
  if (gone) ka_release_kept(gone);
}

static ka_kept *hold_kept(ka_call *call, const ka_key *key)
{
  ka_kept_calls *calls = ka_lock_kept(call->context);
  ka_kept *found = find_kept(calls, key);
  if (found) {
    found->last_use = ++calls->uses;
    atomic_fetch_add(&found->references, 1);
  }
  ka_unlock_kept(call->context);
  return found;
}

/* ---- using a kept call ---- */

static kjit_arg fill_argument(const ka_key *key, const ka_view *views, const kept_argument *kept)
{
  KJ_ASSERT(kept->source != KEPT_INPUT || kept->index < key->array_count);
  switch (kept->source) {
  case KEPT_INPUT: return key->arrays[kept->index].argument;
  case KEPT_VIEW: return views[kept->index].made;
  case KEPT_ITSELF:
  case KEPT_WORK: break; /* perform.c sets the array later */
  }
  return kept->argument;
}

/* Returns a number that identifies a block of temporary storage of a kept call, or 0. */
static uint64_t content_of(const ka_kept *kept, size_t work)
{
  enum { MOST_WORKS = 64 };
  KJ_ASSERT(kept->number && kept->number < UINT64_MAX / MOST_WORKS);
  return work < MOST_WORKS ? kept->number * MOST_WORKS + work : 0;
}

/* Returns whether a thread in the kernel can fail. A thread that fails leaves temporary storage in
 * a state that the next call cannot use, but launches of the next call may be queued already.
 * Failures in the library's look_back are ignored, because they occur only after the failure of
 * another tile or an interruption. */
static bool may_fail(const kjit_module *module, const kj_code *code)
{
  for (uint32_t i = 0; i < code->failure_count; i++) {
    const kj_failure_site *site = &code->failures[i];
    if (site->kind == KJ_FAILURE_INTERRUPTED ||
        !ki_is_of_library(module, site->location.file, "look_back"))
      return true;
  }
  return false;
}

bool ka_leaves_work(ka_call *call)
{
  ka_kept *kept = call->kept;
  KJ_ASSERT(kept && atomic_load(&kept->references));
  int known = atomic_load_explicit(&kept->leaves_work, memory_order_relaxed);
  for (size_t i = 0; i < kept->step_count && !known; i++) {
    kjit_specialization *code;
    bool is_there = false;
    for (size_t k = 0; (code = kjit_get_specialization(kept->steps[i].kernel, k)); k++) {
      if (!kj_hold(code)) continue;
      if (may_fail(kept->steps[i].module, &code->code)) known = MAY_FAIL;
      is_there = true;
      kj_release(code, false);
    }
    /* the code was evicted after the launch; a later call tries again */
    if (!is_there) return false;
  }
  if (!known) known = LEAVES_WORK;
  atomic_store_explicit(&kept->leaves_work, known, memory_order_relaxed);
  return known == LEAVES_WORK;
}

bool ka_take_kept(ka_call *call, const ka_key *key)
{
  KJ_ASSERT(!call->kept && !call->steps.count && !call->works.count);
  ka_kept *kept = call->kept = hold_kept(call, key);
  if (!kept) return false;
  KJ_ASSERT(!call->device || call->device == kept->device);
  call->device = kept->device;
  ka_view *views = KJ_NEW_ARRAY(&call->arena, ka_view, kept->view_count + 1);
  for (size_t i = 0; i < kept->view_count; i++) {
    views[i] = kept->views[i].view;
    views[i].base = key->arrays[kept->views[i].input].argument;
    ka_make_view(call, &views[i]);
  }
  for (size_t i = 0; i < kept->work_count; i++) {
    KJ_PUSH(&call->arena, &call->works, kept->works[i]);
    if (kept->works[i].starts_zero) call->works.items[i].content = content_of(kept, i);
  }
  const kept_argument *next = kept->arguments;
  for (size_t i = 0; i < kept->step_count; i++) {
    ka_step step = kept->steps[i];
    step.module = NULL; /* the kept call retains the module */
    step.config.stream = call->options.stream;
    step.arguments = KJ_NEW_ARRAY(&call->arena, kjit_arg, step.count + 1);
    for (size_t j = 0; j < step.count; j++) step.arguments[j] = fill_argument(key, views, next++);
    KJ_PUSH(&call->arena, &call->steps, step);
  }
  return true;
}

/* ---- comparison of kept and new steps, for assertions ---- */

static bool is_same_step(const ka_call *call, const ka_key *key, const ka_step *kept,
                         const kept_argument *arguments, const ka_step *step)
{
  if (kept->kernel != step->kernel || kept->count != step->count ||
      memcmp(kept->config.grid, step->config.grid, sizeof step->config.grid) != 0)
    return false;
  for (size_t i = 0; i < step->count; i++) {
    kept_argument found;
    if (!find_source(call, key, &step->arguments[i], &found) ||
        found.source != arguments[i].source || found.index != arguments[i].index ||
        memcmp(&found.argument, &arguments[i].argument, sizeof found.argument) != 0)
      return false;
  }
  return true;
}

bool ka_agrees_with_kept(ka_call *call, const ka_key *key)
{
  ka_kept *kept = hold_kept(call, key);
  if (!kept) return true;
  bool agrees = kept->device == call->device && kept->step_count == call->steps.count &&
                kept->work_count == call->works.count && kept->view_count == call->viewed.count;
  for (size_t i = 0; i < kept->work_count && agrees; i++)
    agrees = kept->works[i].element == call->works.items[i].element &&
             kept->works[i].count == call->works.items[i].count &&
             kept->works[i].starts_zero == call->works.items[i].starts_zero;
  const kept_argument *arguments = kept->arguments;
  for (size_t i = 0; i < kept->step_count && agrees; i++) {
    agrees = is_same_step(call, key, &kept->steps[i], arguments, &call->steps.items[i]);
    arguments += kept->steps[i].count;
  }
  ka_release_kept(kept);
  return agrees;
}

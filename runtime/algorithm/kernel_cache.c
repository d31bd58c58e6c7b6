/* Kernels by their text and by what their extern funcs stand for: parsed and linked once. A kernel
 * keeps its specializations as any other does, so that a call which comes again finds its code. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "algorithm/algorithm.h"
#include "ir/context.h"

enum { MOST_KERNELS = 256, MOST_MEANINGS = KI_MOST_MEANINGS };

/* A text of which others are linked, one that is linked, one with a kernel that is linked where it
 * is compiled. */
typedef enum form { OPEN, LINKED, KERNEL } form;

typedef struct cached {
  char *text;
  size_t length;
  uint64_t hash, last_use;
  const ki_decl *meanings[MOST_MEANINGS]; /* their modules are kept by the linked module */
  size_t count;
  form form;
  kjit_module *module;
  kjit_kernel *kernel;
} cached;

typedef struct ka_cache {
  pthread_mutex_t mutex;
  uint64_t uses;
  size_t count;
  cached items[MOST_KERNELS];
  ka_kept_calls kept;
  kj_attachment attachment;
} ka_cache;

ka_kept_calls *ka_lock_kept(kjit_context *context)
{
  ka_cache *cache = kj_get_runtime(context)->algorithms;
  kj_lock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  return &cache->kept;
}

void ka_unlock_kept(kjit_context *context)
{
  kj_unlock(&kj_get_runtime(context)->algorithms->mutex, KJ_LOCK_ALGORITHMS);
}

/* Under the mutex. */
static void check_cache(const ka_cache *cache)
{
  KJ_ASSERT(kj_is_locked_here(&cache->mutex) && cache->count <= MOST_KERNELS);
  for (size_t i = 0; KJ_HAS_ASSERTIONS && i < cache->count; i++) {
    const cached *item = &cache->items[i];
    KJ_ASSERT(item->text && item->module && item->count <= MOST_MEANINGS);
    KJ_ASSERT((item->form == KERNEL) == (item->kernel != NULL));
    KJ_ASSERT(item->last_use && item->last_use <= cache->uses);
  }
}

static void free_cached(cached *item)
{
  free(item->text);
  kjit_release_module(item->module);
}

/* ---- of a context ---- */

/* Before the context releases its modules. */
static void stop(kj_attachment *attachment)
{
  ka_cache *cache = (ka_cache *)((char *)attachment - offsetof(ka_cache, attachment));
  ka_kept *gone[KA_MOST_KEPT];
  for (size_t i = ka_forget_kept(&cache->kept, NULL, gone); i-- > 0;) ka_release_kept(gone[i]);
  for (size_t i = 0; i < cache->count; i++) free_cached(&cache->items[i]);
  cache->count = 0;
}

static void destroy(kj_attachment *attachment)
{
  ka_cache *cache = (ka_cache *)((char *)attachment - offsetof(ka_cache, attachment));
  KJ_ASSERT(attachment->runtime->algorithms == cache && !cache->count && !cache->kept.count);
  attachment->runtime->algorithms = NULL;
  kj_destroy_mutex(&cache->mutex);
  free(cache);
}

kjit_status ka_open_cache(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  static const kj_attachment_class class = { .stop = stop, .destroy = destroy };
  ka_cache *cache = calloc(1, sizeof *cache);
  if (!cache) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  pthread_mutex_init(&cache->mutex, NULL);
  runtime->algorithms = cache;
  kj_attach_to_runtime(runtime, &cache->attachment, &class);
  return KJIT_OK;
}

/* ---- looking up ---- */

static bool is_wanted(const cached *item, const cached *wanted)
{
  if (item->hash != wanted->hash || item->length != wanted->length ||
      item->count != wanted->count || item->form != wanted->form)
    return false;
  for (size_t i = 0; i < item->count; i++)
    if (item->meanings[i] != wanted->meanings[i]) return false;
  return !memcmp(item->text, wanted->text, item->length);
}

/* Under the mutex; the module is held for the caller. */
static bool look_up(ka_cache *cache, const cached *wanted, kjit_module **module,
                    kjit_kernel **kernel)
{
  check_cache(cache);
  for (size_t i = 0; i < cache->count; i++) {
    cached *item = &cache->items[i];
    if (!is_wanted(item, wanted)) continue;
    item->last_use = ++cache->uses;
    *module = kjit_retain_module(item->module);
    *kernel = item->kernel;
    return true;
  }
  return false;
}

/* Under the mutex. What goes for it is the caller's to free. */
static cached add(ka_cache *cache, cached *made)
{
  cached gone = { 0 };
  size_t place = cache->count;
  if (place == MOST_KERNELS) {
    place = 0;
    for (size_t i = 1; i < MOST_KERNELS; i++)
      if (cache->items[i].last_use < cache->items[place].last_use) place = i;
    gone = cache->items[place];
  } else {
    cache->count++;
  }
  made->last_use = ++cache->uses;
  cache->items[place] = *made;
  check_cache(cache);
  return gone;
}

/* ---- making ---- */

/* The library, of which the text is a part, is that of the build: what else there is are the host's
 * funcs. Their canonical texts have all that they reach. */
static char *write_recipe(const char *text, size_t length, const ki_meaning *meanings, size_t count)
{
  kj_buffer recipe = { 0 };
  kj_append(&recipe, text, length);
  for (size_t i = 0; i < count; i++) {
    const ki_decl *decl = meanings[i].decl;
    kj_append_format(&recipe, "\n# %s is\n", meanings[i].name);
    ki_print_reachable(decl->function->module, &decl, 1, &recipe);
  }
  return kj_take_text(&recipe);
}

/* In place of the module that it has. */
static kjit_status link(kjit_context *context, const cached *wanted, const ki_meaning *meanings,
                        kjit_module **module)
{
  size_t count = wanted->count;
  kj_diagnostics diagnostics = { 0 };
  kjit_module *base = *module;
  if (!count) return KJIT_OK;
  *module = NULL;
  if (wanted->form == KERNEL && ki_can_link_later(meanings, count)) {
    *module = ki_link_later(base, meanings, count);
    if (!*module) (void)kj_error(&diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  } else {
    (void)ki_link_meanings(base, meanings, count, &diagnostics, module);
  }
  kjit_release_module(base);
  return ki_finish_call(context, &diagnostics);
}

static kjit_status find(kjit_context *context, const char *text, size_t length,
                        const ki_meaning *meanings, size_t count, form form, kjit_module **module,
                        kjit_kernel **kernel);

/* Texts come again with other funcs: what they have in common is parsed once, and is a module
 * without a kernel. */
static kjit_status make(kjit_context *context, const cached *wanted, const ki_meaning *meanings,
                        cached *made)
{
  *made = *wanted;
  made->module = NULL;
  made->kernel = NULL;
  made->text = malloc(wanted->length + 1);
  kjit_status status =
    made->text ? KJIT_OK : ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  if (status == KJIT_OK) {
    memcpy(made->text, wanted->text, wanted->length + 1);
    status = wanted->count ? find(context, made->text, wanted->length, NULL, 0, OPEN, &made->module,
                                  &made->kernel)
                           : kjit_parse_module_as(context, KJIT_TRUST_HOST, KI_ALGORITHM_SOURCE,
                                                  made->text, wanted->length, &made->module);
  }
  if (status == KJIT_OK) status = link(context, wanted, meanings, &made->module);
  if (status == KJIT_OK && wanted->form == KERNEL) {
    /* The texts of several modules may call different extern funcs by one name. Only the text of
     * the linked module tells them apart. */
    bool has_recipe = !ki_has_bound_extern(made->module);
    if (has_recipe)
      made->module->recipe = write_recipe(made->text, wanted->length, meanings, wanted->count);
    status = made->module->recipe || !has_recipe
               ? kjit_get_kernel(made->module, "run", &made->kernel)
               : ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  }
  if (status != KJIT_OK) free_cached(made);
  return status;
}

static kjit_status find(kjit_context *context, const char *text, size_t length,
                        const ki_meaning *meanings, size_t count, form form, kjit_module **module,
                        kjit_kernel **kernel)
{
  ka_cache *cache = kj_get_runtime(context)->algorithms;
  ka_kept *forgotten[KA_MOST_KEPT];
  size_t forgotten_count = 0;
  cached wanted = { .text = (char *)text, .length = length, .count = count, .form = form }, made,
         gone = { 0 };
  KJ_ASSERT(count <= MOST_MEANINGS);
  wanted.hash = XXH3_64bits(text, length);
  for (size_t i = 0; i < count; i++) wanted.meanings[i] = meanings[i].decl;
  kj_lock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  bool is_found = look_up(cache, &wanted, module, kernel);
  kj_unlock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  if (is_found) return KJIT_OK;
  KJ_TRY(make(context, &wanted, meanings, &made));
  kj_lock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  is_found = look_up(cache, &wanted, module, kernel); /* another thread was faster */
  if (is_found) {
    gone = made;
  } else {
    *module = kjit_retain_module(made.module);
    *kernel = made.kernel;
    gone = add(cache, &made);
    if (gone.module) forgotten_count = ka_forget_kept(&cache->kept, gone.module, forgotten);
  }
  kj_unlock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  if (gone.module) free_cached(&gone);
  while (forgotten_count) ka_release_kept(forgotten[--forgotten_count]);
  return KJIT_OK;
}

kjit_status ka_find_kernel(kjit_context *context, const char *text, size_t length,
                           const ki_meaning *meanings, size_t count, kjit_module **module,
                           kjit_kernel **kernel)
{
  return find(context, text, length, meanings, count, KERNEL, module, kernel);
}

kjit_status ka_find_linked(kjit_context *context, const char *text, size_t length,
                           const ki_meaning *meanings, size_t count, kjit_module **module)
{
  kjit_kernel *none;
  return find(context, text, length, meanings, count, LINKED, module, &none);
}

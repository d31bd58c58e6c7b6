/* Caches kernels of algorithms. The key is the source, the funcs that its extern funcs are linked
 * to, and the application's structs that it names. Each kernel is parsed and linked once and keeps
 * its specializations like any other kernel, so a repeated call finds its compiled code. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "algorithm/kept_call.h"
#include "code/kernel.h"
#include "ir/context.h"

enum { MOST_KERNELS = 256, MOST_MEANINGS = KI_MOST_MEANINGS };

/* OPEN: a parsed source whose extern funcs are not linked. PARTIAL: like OPEN, but the module is
 * partial (ir/partial.c). LINKED: a linked source that has no kernel. KERNEL: a source with a
 * kernel; if its module is partial or not linked, parsing and linking are completed when the kernel
 * is compiled. */
typedef enum form { OPEN, PARTIAL, LINKED, KERNEL } form;

typedef struct cached {
  /* owned by the cache; the linked module retains the funcs' modules */
  ka_kernel_source source;
  uint64_t hash, last_use;
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

/* Checks the cache's invariants. The caller holds the mutex. */
static void check_cache(const ka_cache *cache)
{
  KJ_ASSERT(kj_is_locked_here(&cache->mutex) && cache->count <= MOST_KERNELS);
  for (size_t i = 0; KJ_HAS_ASSERTIONS && i < cache->count; i++) {
    const cached *item = &cache->items[i];
    KJ_ASSERT(item->source.text && item->module);
    KJ_ASSERT(item->source.function_count <= MOST_MEANINGS);
    KJ_ASSERT((item->form == KERNEL) == (item->kernel != NULL));
    KJ_ASSERT(item->last_use && item->last_use <= cache->uses);
  }
}

static void free_source(ka_kernel_source *source)
{
  free((char *)source->text);
  free((ka_function_name *)source->functions);
  for (size_t i = 0; source->types && i < source->type_count; i++)
    free((char *)source->types[i].name);
  free((ki_named_type *)source->types);
}

/* Copies a source. The copy does not contain the names of the funcs. The names are not needed,
 * because the text declares the funcs in the same order. */
static bool copy_source(ka_kernel_source *copy, const ka_kernel_source *source)
{
  size_t functions = source->function_count, types = source->type_count;
  char *text = malloc(source->length + 1);
  ka_function_name *own = calloc(functions + 1, sizeof *own);
  ki_named_type *named = calloc(types + 1, sizeof *named);
  *copy = (ka_kernel_source){ text, source->length, own, functions, named, types };
  if (!text || !own || !named) return false;
  memcpy(text, source->text, source->length);
  text[source->length] = 0;
  for (size_t i = 0; i < functions; i++) own[i].decl = source->functions[i].decl;
  for (size_t i = 0; i < types; i++) {
    named[i] = (ki_named_type){ strdup(source->types[i].name), source->types[i].type };
    if (!named[i].name) return false;
  }
  return true;
}

static void free_cached(cached *item)
{
  free_source(&item->source);
  kjit_release_module(item->module);
}

/* ---- the cache of a context ---- */

/* Releases all kept calls and cached sources. Called before the context releases its modules. */
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
  const ka_kernel_source *own = &item->source, *other = &wanted->source;
  if (item->hash != wanted->hash || item->form != wanted->form || own->length != other->length ||
      own->function_count != other->function_count || own->type_count != other->type_count)
    return false;
  for (size_t i = 0; i < own->function_count; i++)
    if (own->functions[i].decl != other->functions[i].decl) return false;
  for (size_t i = 0; i < own->type_count; i++)
    if (own->types[i].type != other->types[i].type) return false;
  return !memcmp(own->text, other->text, own->length);
}

/* Finds a cached source. *module is retained for the caller. The caller holds the mutex. */
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

/* Adds an item in place of the least recently used item. Returns the replaced item, which the
 * caller frees. The caller holds the mutex. */
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

/* ---- creating a kernel ---- */

typedef struct recipe {
  kj_buffer text;
  const ka_kernel_source *source;
} recipe;

static void put_struct(const ki_type_printer *printer, kjit_type type)
{
  const ka_kernel_source *source = ((const recipe *)printer->data)->source;
  for (size_t i = 0; i < source->type_count; i++)
    if (source->types[i].type == type) kj_append_text(printer->buffer, source->types[i].name);
}

/* Appends the name, the layout and the fields in a struct to the recipe. The name matters, because
 * messages and debug information contain it. */
static void describe_struct(recipe *r, const ki_types *types, const ki_named_type *named)
{
  const ki_type_info *info = ki_type(types, named->type);
  kj_append_format(&r->text, "\n# %s is struct %s %u:%u packed %d", named->name, info->name,
                   info->size_bytes, info->alignment_bytes, info->is_packed);
  for (uint32_t i = 0; i < info->count; i++) {
    kj_append_format(&r->text, ", %s %u ", info->field_names[i], info->offsets_bytes[i]);
    ki_print_type_by(&(ki_type_printer){ types, &r->text, put_struct, r }, info->items[i]);
  }
}

/* Writes a string that identifies the linked kernel in the disk cache. It contains the source, the
 * application's structs, and the canonical text of everything that its funcs reach. The library is
 * not included, because it is part of the build. */
static char *write_recipe(const ki_types *types, const ka_kernel_source *source,
                          const ki_meaning *meanings)
{
  recipe r = { .source = source };
  kj_append(&r.text, source->text, source->length);
  for (size_t i = 0; i < source->type_count; i++) describe_struct(&r, types, &source->types[i]);
  for (size_t i = 0; i < source->function_count; i++) {
    const ki_decl *decl = meanings[i].decl;
    kj_append_format(&r.text, "\n# %s is\n", meanings[i].open->name);
    ki_print_reachable(decl->function->module, &decl, 1, &r.text);
  }
  return kj_take_text(&r.text);
}

/* Lists the extern funcs in the source itself with the funcs they are linked to, in order of
 * declaration. Imported modules have no unlinked extern funcs. */
static void find_meanings(const kjit_module *base, const ka_kernel_source *source,
                          ki_meaning *meanings)
{
  size_t found = 0;
  for (size_t i = 0; i < base->decls.count; i++) {
    const ki_decl *decl = base->decls.items[i];
    if (decl->kind != KJ_DECL_FUNCTION || !decl->function->is_extern) continue;
    KJ_ASSERT(found < source->function_count);
    meanings[found] = (ki_meaning){ decl, source->functions[found].decl };
    found++;
  }
  KJ_ASSERT(found == source->function_count);
}

/* Replaces *module by the linked module. */
static kjit_status link(kjit_context *context, const cached *wanted, const ki_meaning *meanings,
                        kjit_module **module)
{
  size_t count = wanted->source.function_count;
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

/* Finds the only kernel of the module. */
static kjit_status find_kernel(kjit_context *context, cached *made)
{
  const ki_decls *decls = &made->module->decls;
  size_t i = 0;
  while (decls->items[i]->kind != KJ_DECL_FUNCTION || !decls->items[i]->function->is_kernel) i++;
  made->kernel = kj_get_kernel_object(made->module, (uint32_t)i);
  return made->kernel ? KJIT_OK : ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
}

static kjit_status find(kjit_context *context, const ka_kernel_source *source, form form,
                        kjit_module **module, kjit_kernel **kernel);

/* Returns whether a kernel's module can stay partial (some declarations not parsed yet) until a
 * kernel of it is compiled. */
static bool can_wait(const cached *wanted)
{
  ki_meaning meanings[MOST_MEANINGS];
  size_t count = wanted->source.function_count;
  for (size_t i = 0; i < count; i++) meanings[i].decl = wanted->source.functions[i].decl;
  return wanted->form == PARTIAL ||
         (wanted->form == KERNEL && (!count || ki_can_link_later(meanings, count)));
}

/* Makes a module. The same source is often linked with different funcs. So the source is parsed
 * once, and the unlinked module is cached, too. */
static kjit_status make(kjit_context *context, const cached *wanted, cached *made)
{
  ki_meaning meanings[MOST_MEANINGS];
  *made = *wanted;
  made->module = NULL;
  made->kernel = NULL;
  const ka_kernel_source *own = &made->source;
  kjit_status status = copy_source(&made->source, &wanted->source)
                         ? KJIT_OK
                         : ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  if (status == KJIT_OK && own->function_count) {
    ka_kernel_source open = *own;
    open.function_count = 0;
    status = find(context, &open, can_wait(wanted) ? PARTIAL : OPEN, &made->module, &made->kernel);
    if (status == KJIT_OK) find_meanings(made->module, own, meanings);
  } else if (status == KJIT_OK) {
    status = ki_parse_algorithm(context, own->text, own->length, own->types, own->type_count,
                                can_wait(wanted), &made->module);
  }
  if (status == KJIT_OK) status = link(context, wanted, meanings, &made->module);
  if (status == KJIT_OK && wanted->form == KERNEL) {
    /* The module has a recipe, unless its extern funcs are bound to code of the application.
     * Several modules may have such funcs with one name and different bindings, and only the text
     * of the linked module distinguishes them. */
    bool has_recipe = !ki_has_bound_extern(made->module);
    if (has_recipe) made->module->recipe = write_recipe(context->types, own, meanings);
    status = made->module->recipe || !has_recipe
               ? find_kernel(context, made)
               : ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  }
  if (status != KJIT_OK) free_cached(made);
  return status;
}

static kjit_status find(kjit_context *context, const ka_kernel_source *source, form form,
                        kjit_module **module, kjit_kernel **kernel)
{
  ka_cache *cache = kj_get_runtime(context)->algorithms;
  ka_kept *forgotten[KA_MOST_KEPT];
  size_t forgotten_count = 0;
  cached wanted = { .source = *source, .form = form }, made, gone = { 0 };
  KJ_ASSERT(source->function_count <= MOST_MEANINGS);
  wanted.hash = XXH3_64bits(source->text, source->length);
  kj_lock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  bool is_found = look_up(cache, &wanted, module, kernel);
  kj_unlock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  if (is_found) return KJIT_OK;
  KJ_TRY(make(context, &wanted, &made));
  kj_lock(&cache->mutex, KJ_LOCK_ALGORITHMS);
  /* another thread has added the same kernel at the same time */
  is_found = look_up(cache, &wanted, module, kernel);
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

kjit_status ka_find_kernel(kjit_context *context, const ka_kernel_source *source,
                           kjit_module **module, kjit_kernel **kernel)
{
  return find(context, source, KERNEL, module, kernel);
}

kjit_status ka_find_linked(kjit_context *context, const ka_kernel_source *source,
                           kjit_module **module)
{
  kjit_kernel *none;
  return find(context, source, LINKED, module, &none);
}

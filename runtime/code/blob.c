/* Exchanges code with other processes: blobs that the application exports and imports, files made
 * by kjit-cache, and the file installed with libkjit. All of them are archives (archive.h). */
#include <kjit/cache.h>
#include <kjit/code.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "code/archive.h"
#include "code/child.h"
#include "cuda/toolkit.h"
#include "support/paths.h"

static kjit_status fail_memory(kj_diagnostics *diagnostics)
{
  return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
}

/* ---- imported code ---- */

bool kj_find_import(const kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                    kj_code *code)
{
  kj_archive *first = atomic_load_explicit(&runtime->imports, memory_order_acquire);
  return kj_find_archived(first, key, compiler, code);
}

void kj_free_imports(kj_runtime *runtime)
{
  kj_close_archives(atomic_load(&runtime->imports));
  if (!runtime->disk) return;
  kj_close_archives(runtime->disk->installed);
  kj_free_diagnostics(&runtime->disk->installed_reasons);
  if (runtime->disk->made) kj_free_archive_writer(runtime->disk->made);
  free(runtime->disk->made);
  runtime->disk->made = NULL;
}

/* Adds an archive to the list. An archive stays in the list until the context ends, so that readers
 * need no lock. */
static void add_import(kj_runtime *runtime, kj_archive *archive)
{
  archive->next = atomic_load(&runtime->imports);
  while (!atomic_compare_exchange_weak(&runtime->imports, &archive->next, archive)) {}
}

kjit_status kjit_import_code(kjit_context *context, const void *blob, size_t size_bytes)
{
  static const char call[] = "kjit_import_code";
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!blob) return ki_fail_call(context, KJIT_ERROR_MISUSE, "%s: blob is NULL", call);
  kj_diagnostics diagnostics = { 0 };
  kj_archive *archive;
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_identify_disk(runtime->disk);
  if (kj_open_blob(call, blob, size_bytes, runtime->disk->build, &diagnostics, &archive) == KJIT_OK)
    add_import(runtime, archive);
  return ki_finish_call(context, &diagnostics);
}

kjit_status kjit_open_cache(kjit_context *context, const char *path)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!path) return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_open_cache: path is NULL");
  kj_diagnostics diagnostics = { 0 };
  kj_archive *archive;
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_identify_disk(runtime->disk);
  if (kj_open_archive_file(path, false, runtime->disk->build, &diagnostics, &archive) == KJIT_OK)
    add_import(runtime, archive);
  return ki_finish_call(context, &diagnostics);
}

/* ---- the installed file ---- */

static char *find_installed_path(const kj_disk *disk)
{
  kj_buffer path = { 0 };
  if (disk->installed_path) return *disk->installed_path ? strdup(disk->installed_path) : NULL;
  kj_append_own_folder(&path);
  if (path.length)
    kj_append_format(&path, "kjit-%d.%d.%d/kernels.kjit", KJIT_VERSION_MAJOR, KJIT_VERSION_MINOR,
                     KJIT_VERSION_PATCH);
  return path.length ? kj_take_text(&path) : NULL;
}

/* Opens the installed file. If the file does not exist, this is an error only if the configuration
 * names it. */
static void open_installed(kj_disk *disk)
{
  char *path = find_installed_path(disk);
  bool is_wanted = path && (disk->installed_path || !access(path, F_OK));
  kj_identify_disk(disk);
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  if (!atomic_load(&disk->has_opened_installed)) {
    if (is_wanted)
      (void)kj_open_archive_file(path, !disk->installed_path, disk->build, &disk->installed_reasons,
                                 &disk->installed);
    atomic_store_explicit(&disk->has_opened_installed, true, memory_order_release);
  }
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
  free(path);
}

static kj_archive *get_installed(kj_disk *disk)
{
  if (!atomic_load_explicit(&disk->has_opened_installed, memory_order_acquire))
    open_installed(disk);
  return disk->installed;
}

bool kj_has_named_code(kj_runtime *runtime)
{
  return kj_has_imports(runtime) || get_installed(runtime->disk);
}

bool kj_find_installed(kj_runtime *runtime, const kj_disk_key *key, const kj_digest *compiler,
                       kj_code *code)
{
  return kj_find_archived(get_installed(runtime->disk), key, compiler, code);
}

static void warn_of_archives(kj_archive *first, kj_diagnostics *diagnostics)
{
  for (kj_archive *at = first; at; at = at->next)
    if (atomic_load_explicit(&at->has_damage, memory_order_relaxed) &&
        !atomic_exchange_explicit(&at->has_warned, true, memory_order_relaxed))
      kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_WARNING, KJIT_OK,
                "%s: some of the compiled code is damaged or cannot be read and is not used",
                at->name);
}

void kj_warn_of_damage(kj_runtime *runtime, kj_diagnostics *diagnostics)
{
  kj_disk *disk = runtime->disk;
  warn_of_archives(atomic_load_explicit(&runtime->imports, memory_order_acquire), diagnostics);
  if (!atomic_load_explicit(&disk->has_opened_installed, memory_order_acquire)) return;
  warn_of_archives(disk->installed, diagnostics);
  const kj_diagnostics *reasons = &disk->installed_reasons;
  if (!reasons->count || atomic_exchange(&disk->has_warned, true)) return;
  for (size_t i = 0; i < reasons->count; i++)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_WARNING, KJIT_OK,
              "the kernels that ship with kjit are not used: %s", reasons->items[i].message);
}

void kj_explain_miss(kj_runtime *runtime, const kj_disk_key *wanted, const char *kernel,
                     const char *signature, kj_diagnostics *diagnostics)
{
  kj_report_missing(atomic_load(&runtime->imports), wanted, kernel, signature, diagnostics);
}

/* ---- code that the context has compiled for other machines ---- */

/* Returns the reason why other processes cannot use the code, or NULL if they can. */
static const char *why_left_out(kj_disk *disk, const kj_disk_key *key, const kj_code *code)
{
  if (!key) return "its module contains a guest's declaration, or has debug information";
  if (code->can_fail && !key->has_sources)
    return "its threads can fail, and the file name of its source is not known";
  if (!kj_has_own_math(disk, code))
    return "it has math functions of a file; kjit_config.libdevice_path \"libclc\" gives the code "
           "functions that ship with kjit";
  return NULL;
}

static kjit_status add_made(kj_runtime *runtime, const kj_disk_key *key, const kj_code *code,
                            bool is_machine_code, kj_diagnostics *diagnostics)
{
  kj_disk *disk = runtime->disk;
  kj_digest compiler = { 0 };
  kj_archived made = { .digest = key->digest, .is_machine_code = is_machine_code };
  (void)kj_identify_compiler(runtime, &compiler);
  made.entry = kj_pack_entry(key, compiler, code, &made.size_bytes);
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  if (!disk->made) disk->made = calloc(1, sizeof *disk->made);
  bool has_writer = disk->made != NULL;
  kjit_status status = has_writer ? kj_add_to_archive(disk->made, made, diagnostics) : KJIT_OK;
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
  if (has_writer) return status;
  free(made.entry);
  return fail_memory(diagnostics);
}

kjit_status kj_record_code(kj_runtime *runtime, const kj_disk_key *key, const char *name,
                           const kj_code *code, kj_diagnostics *diagnostics)
{
  const char *why = why_left_out(runtime->disk, key, code);
  if (!why) return add_made(runtime, key, code, false, diagnostics);
  kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_REMARK, KJIT_OK,
            "kjit_export_cache leaves out `%s`: %s", name, why);
  return KJIT_OK;
}

kjit_status kj_record_machine_code(const kjit_device *device, const kj_compile_request *request,
                                   const kj_disk_key *key, const kj_code *ptx,
                                   kj_diagnostics *diagnostics)
{
  kj_runtime *runtime = device->runtime;
  const char *ptxas = runtime->context->config.ptxas;
  kj_compile_request assembled = *request;
  kj_disk_key assembled_key = { 0 };
  if (!ptxas || !kj_is_linked(device) || why_left_out(runtime->disk, key, ptx)) return KJIT_OK;
  const kj_assembly assembly = { .ptxas = *ptxas ? ptxas : NULL, .target = device->code_target };
  kj_code code = *ptx;
  KJ_TRY(
    kj_assemble(&assembly, ptx->data, ptx->size_bytes, diagnostics, &code.data, &code.size_bytes));
  assembled.stage = KJIT_STAGE_CUBIN;
  kjit_status status = kj_make_named_key(runtime->disk, &assembled, &assembled_key)
                         ? add_made(runtime, &assembled_key, &code, true, diagnostics)
                         : fail_memory(diagnostics);
  kj_free_disk_key(&assembled_key);
  free(code.data);
  return status;
}

/* Copies the entries for other machines to the writer, with the entries that contain machine code
 * last. The archive compresses better in this order, because an entry with machine code is similar
 * only to other such entries. */
static kjit_status copy_made(kj_disk *disk, kj_archive_writer *writer, kj_diagnostics *diagnostics)
{
  kjit_status status = KJIT_OK;
  kj_lock(&disk->mutex, KJ_LOCK_DISK);
  const kj_archive_writer *made = disk->made;
  size_t count = made ? made->count : 0;
  for (size_t i = 0; i < 2 * count && status == KJIT_OK; i++) {
    const kj_archived *item = &made->items[i % count];
    if (item->is_machine_code == (i >= count)) status = kj_copy_archived(writer, item, diagnostics);
  }
  kj_unlock(&disk->mutex, KJ_LOCK_DISK);
  return status;
}

static kjit_status copy_import(const kj_archive *archive, uint64_t index, kj_archive_writer *writer,
                               kj_diagnostics *diagnostics)
{
  kj_archived item = { 0 };
  size_t key_bytes;
  item.entry = kj_read_archived(archive, index, &item.size_bytes);
  if (item.entry && kj_read_entry_key(item.entry, item.size_bytes, &key_bytes, &item.digest))
    return kj_add_to_archive(writer, item, diagnostics);
  free(item.entry);
  return kj_error(diagnostics, KJIT_ERROR_IO, "%s: entry %llu is damaged or cannot be read",
                  archive->name, (unsigned long long)index);
}

static kjit_status copy_imports(const kj_archive *first, kj_archive_writer *writer,
                                kj_diagnostics *diagnostics)
{
  kjit_status status = KJIT_OK;
  for (const kj_archive *at = first; at && status == KJIT_OK; at = at->next) {
    uint64_t *order = kj_order_archived(at);
    if (!order) return fail_memory(diagnostics);
    for (uint64_t i = 0; i < at->count && status == KJIT_OK; i++)
      status = copy_import(at, order[i], writer, diagnostics);
    free(order);
  }
  return status;
}

static kjit_status export_cache(kj_runtime *runtime, kj_diagnostics *diagnostics, void **blob,
                                size_t *size_bytes)
{
  kj_archive_writer writer = { 0 };
  kj_identify_disk(runtime->disk);
  kjit_status status = copy_made(runtime->disk, &writer, diagnostics);
  if (status == KJIT_OK)
    status = copy_imports(atomic_load(&runtime->imports), &writer, diagnostics);
  if (status == KJIT_OK)
    status = kj_finish_archive(&writer, runtime->disk->build, diagnostics, blob, size_bytes);
  kj_free_archive_writer(&writer);
  return status;
}

kjit_status kjit_export_cache(kjit_context *context, void **blob, size_t *size_bytes)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!blob || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_export_cache: %s is NULL",
                        blob ? "size_bytes" : "blob");
  kj_diagnostics diagnostics = { 0 };
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  (void)export_cache(runtime, &diagnostics, blob, size_bytes);
  return ki_finish_call(context, &diagnostics);
}

/* ---- export of a module ---- */

static bool is_elf(const void *data, size_t size_bytes)
{
  return size_bytes > 4 && !memcmp(data, "\177ELF", 4);
}

kjit_status kj_copy_binary(kjit_specialization *specialization, kj_diagnostics *diagnostics,
                           void **binary, size_t *size_bytes)
{
  const kj_code *code = &specialization->code;
  if (!code->data) return fail_memory(diagnostics);
  kjit_device *device = specialization->device;
  if (device->operations->link && !is_elf(code->data, code->size_bytes)) {
    /* code that is linked with PTX of the application is machine code already, and is not
     * assembled */
    kj_link_input input = kj_link_own(code);
    return kj_link(device, &input, 1, diagnostics, binary, size_bytes);
  }
  *binary = malloc(code->size_bytes + 1);
  if (!*binary) return fail_memory(diagnostics);
  memcpy(*binary, code->data, code->size_bytes);
  *size_bytes = code->size_bytes;
  return KJIT_OK;
}

/* Adds an entry. If a driver can translate the PTX, the entry contains the machine code instead. */
static kjit_status add_binary(kjit_specialization *specialization, const kj_disk_key *key,
                              kj_archive_writer *writer, kj_diagnostics *diagnostics)
{
  kj_code code = specialization->code;
  kj_digest compiler = { 0 };
  void *binary;
  kj_archived made = { .digest = key->digest };
  KJ_TRY(kj_copy_binary(specialization, diagnostics, &binary, &code.size_bytes));
  code.data = binary;
  (void)kj_identify_compiler(specialization->device->runtime, &compiler);
  made.entry = kj_pack_entry(key, compiler, &code, &made.size_bytes);
  free(binary);
  return kj_add_to_archive(writer, made, diagnostics);
}

/* Exports a held specialization. Code that no other process could use is not exported: code with
 * debug information, whose files and lines belong to one program; plain code; code of a lost
 * device; and code that refers to lines in a module that has no source text. Code for a named
 * target is also not exported if it belongs to a guest or uses math functions from a file. */
static kjit_status export_held(kjit_specialization *specialization, kj_archive_writer *writer,
                               kj_diagnostics *diagnostics)
{
  const kjit_device *device = specialization->device;
  kj_disk *disk = device->runtime->disk;
  const kj_compile_request request =
    kj_make_request(specialization->kernel, device, &specialization->compiled_for,
                    kj_code_stage(device));
  kj_disk_key key = { 0 };
  if (request.debug || specialization->code.is_plain ||
      specialization->generation != atomic_load(&device->generation) ||
      (device->is_target && request.module->has_guest))
    return KJIT_OK;
  if (!kj_make_device_key(disk, device, &request, &key)) return fail_memory(diagnostics);
  bool is_usable = (!specialization->code.can_fail || key.has_sources) &&
                   (!device->is_target || kj_has_own_math(disk, &specialization->code));
  kjit_status status = is_usable ? add_binary(specialization, &key, writer, diagnostics) : KJIT_OK;
  kj_free_disk_key(&key);
  return status;
}

static kjit_status export_kernel(kjit_kernel *kernel, kj_archive_writer *writer,
                                 kj_diagnostics *diagnostics)
{
  kjit_specialization *specialization;
  for (size_t i = 0; (specialization = kjit_get_specialization(kernel, i)); i++) {
    if (!kj_hold(specialization)) continue;
    kjit_status status = export_held(specialization, writer, diagnostics);
    kj_release(specialization, false);
    if (status != KJIT_OK) return status;
  }
  return KJIT_OK;
}

static kjit_status export_module(kjit_module *module, kj_runtime *runtime,
                                 kj_diagnostics *diagnostics, void **blob, size_t *size_bytes)
{
  kj_archive_writer writer = { 0 };
  kjit_status status = KJIT_OK;
  kjit_kernel *kernel;
  kj_identify_disk(runtime->disk);
  for (size_t i = 0; i < module->decls.count && status == KJIT_OK; i++)
    if ((kernel = kj_get_made_kernel(module, i)))
      status = export_kernel(kernel, &writer, diagnostics);
  if (status == KJIT_OK)
    status = kj_finish_archive(&writer, runtime->disk->build, diagnostics, blob, size_bytes);
  kj_free_archive_writer(&writer);
  return status;
}

kjit_status kjit_export_code(kjit_module *module, void **blob, size_t *size_bytes)
{
  if (!module) return KJIT_ERROR_MISUSE;
  kjit_context *context = module->context;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!blob || !size_bytes)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_export_code: %s is NULL",
                        blob ? "size_bytes" : "blob");
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  kj_diagnostics diagnostics = { 0 };
  (void)export_module(module, runtime, &diagnostics, blob, size_bytes);
  return ki_finish_call(context, &diagnostics);
}

/* ---- listing ---- */

static kjit_status visit_archived(kjit_context *context, const kj_archive *archive, uint64_t index,
                                  void (*visit)(void *user, const kjit_cache_entry *entry),
                                  void *user, kj_diagnostics *diagnostics)
{
  size_t size_bytes, key_bytes;
  kj_digest digest;
  char name[KJ_ENTRY_NAME_BYTES];
  void *bytes = kj_read_archived(archive, index, &size_bytes);
  const char *key = bytes ? kj_read_entry_key(bytes, size_bytes, &key_bytes, &digest) : NULL;
  char *copy = key ? strndup(key, key_bytes) : NULL;
  free(bytes);
  if (key && !copy) return fail_memory(diagnostics);
  kj_name_archived(archive, index, name);
  kjit_cache_entry entry = { .size_bytes = sizeof entry,
                             .name = name,
                             .file_bytes = kj_archived_bytes(archive, index) };
  if (copy) kj_read_key_lines(copy, &entry);
  ki_host_code code;
  ki_enter_host(&code, context);
  visit(user, &entry);
  ki_leave_host(&code);
  free(copy);
  return KJIT_OK;
}

static kjit_status visit_file(kj_runtime *runtime, const char *given,
                              void (*visit)(void *user, const kjit_cache_entry *entry), void *user,
                              kj_diagnostics *diagnostics)
{
  kj_archive *archive = NULL;
  kj_disk *disk = runtime->disk;
  char *path = given ? strdup(given) : find_installed_path(disk);
  if (!path && given) return fail_memory(diagnostics);
  if (!path)
    return kj_error(diagnostics, KJIT_ERROR_IO,
                    "this libkjit was installed without a file of compiled kernels");
  kj_identify_disk(disk);
  kjit_status status = kj_open_archive_file(path, !given, disk->build, diagnostics, &archive);
  for (uint64_t i = 0; status == KJIT_OK && i < archive->count; i++)
    status = visit_archived(runtime->context, archive, i, visit, user, diagnostics);
  kj_close_archives(archive);
  free(path);
  return status;
}

kjit_status kjit_visit_cache_file(kjit_context *context, const char *path,
                                  void (*visit)(void *user, const kjit_cache_entry *entry),
                                  void *user)
{
  if (!context) return KJIT_ERROR_MISUSE;
  if (ki_is_forked(context)) return KJIT_ERROR_FORKED;
  if (!visit)
    return ki_fail_call(context, KJIT_ERROR_MISUSE, "kjit_visit_cache_file: visit is NULL");
  kj_diagnostics diagnostics = { 0 };
  kj_runtime *runtime = kj_get_runtime(context);
  if (!runtime) return ki_fail_call(context, KJIT_ERROR_MEMORY, "out of memory");
  (void)visit_file(runtime, path, visit, user, &diagnostics);
  return ki_finish_call(context, &diagnostics);
}

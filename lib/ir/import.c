/* `import`: finds the sources that a module imports.
 *
 * kjit first calls the application's kjit_config.find_import. If the application has not set it,
 * kjit searches the folder of the importing source and then the folders of kjit_config.import_path.
 * Last, it searches lib/library. Imports in lib/library and in kjit's algorithms are searched in
 * lib/library first, so no file of the same name can replace them. A source is read only once, even
 * if it is imported several times or if imports form a cycle.
 *
 * A guest's source can import only sources that find_import provides and sources of lib/library;
 * kjit reads no files for it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ir/module.h"
#include "ir/parser.h"
#include "library/library.h"
#include "ir/context.h"
#include "support/host_process.h"
#include "support/stack.h"

typedef struct importer {
  kjit_module *module;
  kj_arena *arena;
  kj_diagnostics *diagnostics;
  /* for each source of the module: the canonical path of its file, or the name that the application
   * has given; NULL for a source of lib/library */
  KJ_LIST(const char *) identities;
} importer;

static void fail(importer *in, const ki_import *import, kjit_status status, const char *format,
                 const char *a, const char *b)
{
  const char *text = kj_format(in->arena, format, a, b);
  kj_report(in->diagnostics, &in->module->sources, import->location, KJIT_SEVERITY_ERROR, status,
            "%s", text);
}

static bool is_known(const importer *in, const char *identity)
{
  for (size_t i = 0; i < in->identities.count; i++)
    if (in->identities.items[i] && strcmp(in->identities.items[i], identity) == 0) return true;
  return false;
}

static bool has_library_source(const importer *in, const kj_library_source *library)
{
  for (size_t i = 0; i < in->module->sources.count; i++)
    if (in->module->sources.items[i].library == library) return true;
  return false;
}

static void parse_last(importer *in, const char *identity)
{
  KJ_PUSH(in->arena, &in->identities, identity);
  ki_parse_source(in->module, (uint32_t)in->module->sources.count - 1, in->diagnostics);
}

static void add(importer *in, const char *identity, const ki_text *text)
{
  ki_add_source(in->module, text);
  parse_last(in, kj_copy_string(in->arena, identity, strlen(identity)));
}

static const kj_source *importing_source(const importer *in, const ki_import *import)
{
  return &in->module->sources.items[import->importer];
}

/* ---- sources of the application and of lib/library ---- */

/* Imports a source of lib/library. Returns false if lib/library has no source with this name. */
static bool add_from_library(importer *in, const ki_import *import)
{
  const kj_library_source *source = kj_library;
  while (source->name && strcmp(source->name, import->name)) source++;
  if (!source->name) return false;
  if (has_library_source(in, source)) return true;
  ki_add_library_source(in->module, source);
  parse_last(in, NULL);
  return true;
}

/* Returns whether the importing source belongs to kjit: it is in lib/library, or an algorithm has
 * generated it. */
static bool is_own(const importer *in, const ki_import *import)
{
  const kj_source *source = importing_source(in, import);
  return source->library || source->is_algorithm;
}

bool ki_is_of_library(const kjit_module *module, uint32_t file, const char *name)
{
  const kj_library_source *library =
    file < module->sources.count ? module->sources.items[file].library : NULL;
  return library && strcmp(library->name, name) == 0;
}

static void ask_host(importer *in, const ki_import *import)
{
  const kjit_config *config = &in->module->context->config;
  const kj_source *from = importing_source(in, import);
  kjit_import_source found = { .size_bytes = sizeof found };
  ki_host_code code;
  ki_enter_host(&code, in->module->context);
  bool is_found = config->find_import(config->user, from->name, import->name, &found);
  ki_leave_host(&code);
  if (!is_found) {
    if (!add_from_library(in, import))
      fail(in, import, KJIT_ERROR_NAME, "the imported source `%s` does not exist%s", import->name,
           "");
  } else if (!found.name || (!found.text && found.text_bytes))
    fail(in, import, KJIT_ERROR_MISUSE, "the application's find_import returned no %s for `%s`",
         found.name ? "text" : "name", import->name);
  else if (found.text_bytes > KJ_MAX_SOURCE_BYTES)
    fail(in, import, KJIT_ERROR_SYNTAX, "`%s` is larger than the maximum size of a source%s",
         import->name, "");
  else if (!ki_is_trust(found.trust))
    fail(in, import, KJIT_ERROR_MISUSE, "find_import returned an unknown trust for `%s`%s",
         import->name, "");
  else if (!is_known(in, found.name))
    add(in, found.name,
        &(ki_text){ .name = found.name,
                    .text = found.text ? found.text : "",
                    .size_bytes = found.text_bytes,
                    .is_guest = ki_is_guest(found.trust, from->is_guest) });
}

/* ---- files ---- */

/* Joins a folder and a name to a path. If the folder length is 0, the path is the name. */
static const char *join(importer *in, const char *folder, size_t length, const char *name)
{
  if (length == 0 || name[0] == '/') return name;
  return kj_format(in->arena, "%.*s%s%s", (int)length, folder, folder[length - 1] == '/' ? "" : "/",
                   name);
}

static size_t folder_length(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) + 1 : 0;
}

/* Returns the path of the imported file, or NULL if no such file exists. */
static const char *find_file(importer *in, const ki_import *import)
{
  const char *source = importing_source(in, import)->name,
             *folders = in->module->context->config.import_path;
  const char *path = join(in, source, folder_length(source), import->name);
  if (access(path, F_OK) == 0) return path;
  while (folders && *folders) {
    size_t length = strcspn(folders, ":");
    path = length ? join(in, folders, length, import->name) : import->name;
    if (length && access(path, F_OK) == 0) return path;
    folders += length + (folders[length] == ':');
  }
  return NULL;
}

/* Reads a file. On failure returns NULL and sets errno; EFBIG means that the file is too large.
 * Accepts only regular files, because reading from a pipe or a device may never end. */
static char *read_file(importer *in, const char *path, size_t *size_bytes)
{
  struct stat info;
  if (stat(path, &info)) return NULL;
  errno = !S_ISREG(info.st_mode) ? EINVAL : info.st_size > KJ_MAX_SOURCE_BYTES ? EFBIG : 0;
  if (errno) return NULL;
  size_t most = (size_t)info.st_size, size = 0;
  /* allocated before the file is opened, because the arena jumps out of this function when out of
   * memory */
  char *text = KJ_NEW_ARRAY(in->arena, char, most + 1);
  int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return NULL;
  ssize_t more = 0;
  while (size < most && (more = read(file, text + size, most - size)) > 0) size += (size_t)more;
  int reason = errno;
  close(file);
  errno = reason;
  *size_bytes = size;
  return more < 0 ? NULL : text;
}

static void read_import_file(importer *in, const ki_import *import)
{
  size_t size_bytes;
  char canonical[PATH_MAX];
  const char *path = find_file(in, import);
  if (!path) {
    if (!add_from_library(in, import))
      fail(in, import, KJIT_ERROR_IO,
           "cannot import `%s`: the file is neither in the directory of this source nor in a "
           "directory of the import path%s",
           import->name, "");
    return;
  }
  if (!realpath(path, canonical)) {
    fail(in, import, KJIT_ERROR_IO, "`%s` cannot be imported: %s", path, strerror(errno));
    return;
  }
  if (is_known(in, canonical)) return;
  char *text = read_file(in, path, &size_bytes);
  if (!text) {
    fail(in, import, KJIT_ERROR_IO, "`%s` cannot be imported: %s", path,
         errno == EINVAL  ? "it is not a regular file"
         : errno == EFBIG ? "it is larger than the maximum size of a source"
                          : strerror(errno));
    return;
  }
  add(in, canonical, &(ki_text){ .name = path, .text = text, .size_bytes = size_bytes });
}

static void import_for_guest(importer *in, const ki_import *import)
{
  if (!add_from_library(in, import))
    fail(in, import, KJIT_ERROR_REFUSED,
         "a guest source can import only sources that the application's find_import returns and "
         "modules of kjit; `%s` is neither%s",
         import->name, "");
}

/* ---- importing all sources ---- */

static const char *root_identity(importer *in)
{
  char canonical[PATH_MAX];
  const char *name = in->module->sources.items[0].name;
  bool is_file = !in->module->context->config.find_import && realpath(name, canonical);
  return is_file ? kj_copy_string(in->arena, canonical, strlen(canonical)) : name;
}

void ki_read_imports(kjit_module *module, kj_diagnostics *diagnostics)
{
  if (!module->imports.count || !module->context) return;
  const kj_source *root = &module->sources.items[0];
  if (root->is_algorithm && ki_import_reached(module, diagnostics)) {
    module->imports.count = 0;
    return;
  }
  importer *in = KJ_NEW(&module->arena, importer);
  *in = (importer){ .module = module, .arena = &module->arena, .diagnostics = diagnostics };
  KJ_PUSH(in->arena, &in->identities, root_identity(in));
  /* reading an import can append further imports to the list */
  for (size_t i = 0; i < module->imports.count && !diagnostics->error_count; i++) {
    const ki_import import = module->imports.items[i];
    if (module->sources.count >= KJ_MAX_SOURCES) {
      kj_report(diagnostics, &module->sources, import.location, KJIT_SEVERITY_ERROR,
                KJIT_ERROR_UNSUPPORTED, "a module can have at most %d sources", KJ_MAX_SOURCES);
      return;
    }
    if (is_own(in, &import) && add_from_library(in, &import)) continue;
    if (module->context->config.find_import) ask_host(in, &import);
    else if (importing_source(in, &import)->is_guest) import_for_guest(in, &import);
    else read_import_file(in, &import);
  }
  module->imports.count = 0;
}

/* ---- creating a module from a text ---- */

bool ki_is_guest(kjit_trust trust, bool is_default)
{
  return trust == KJIT_TRUST_DEFAULT ? is_default : trust == KJIT_TRUST_GUEST;
}

static uint32_t append_source(kjit_module *module, const kj_source *source)
{
  size_t count = module->sources.count;
  kj_source *sources = KJ_NEW_ARRAY(&module->arena, kj_source, count + 1);
  if (count) memcpy(sources, module->sources.items, count * sizeof *sources);
  sources[count] = *source;
  module->sources = (kj_sources){ sources, count + 1 };
  return (uint32_t)count;
}

void ki_add_source(kjit_module *module, const ki_text *text)
{
  const kj_source source = { .name = kj_copy_string(&module->arena, text->name, strlen(text->name)),
                             .text = kj_copy_string(&module->arena, text->text, text->size_bytes),
                             .size_bytes = text->size_bytes,
                             .is_guest = text->is_guest,
                             .rules = text->rules,
                             .is_algorithm = text->is_algorithm };
  (void)append_source(module, &source);
}

void ki_add_library_source(kjit_module *module, const kj_library_source *source)
{
  const kj_source added = { .name = kj_format(&module->arena, "<%s>", source->name),
                            .text = source->text,
                            .size_bytes = source->size_bytes,
                            .library = source };
  (void)append_source(module, &added);
}

uint32_t ki_add_named_source(kjit_module *module, uint32_t of, const char *name, const char *shown,
                             size_t shown_bytes)
{
  const kj_source source = { .name = kj_copy_string(&module->arena, name, strlen(name)),
                             .shown =
                               shown ? kj_copy_string(&module->arena, shown, shown_bytes) : NULL,
                             .shown_bytes = shown_bytes,
                             .is_guest = module->sources.items[of].is_guest,
                             .is_named = true };
  return append_source(module, &source);
}

static void read_builtin_func(kjit_module *module, const ki_text *text, kj_diagnostics *diagnostics)
{
  module->is_builtin_code = true;
  ki_import_func(module, text->name, text->builtin_func, diagnostics);
  if (diagnostics->error_count) longjmp(*module->arena.on_failure, KJ_JUMP_ERROR);
}

static void read_text(kjit_module *module, const ki_text *text, bool with_imports,
                      kj_diagnostics *diagnostics)
{
  bool is_too_long = text->size_bytes > KJ_MAX_SOURCE_BYTES;
  ki_text read = *text;
  if (!read.name) read.name = "module";
  if (is_too_long) read.size_bytes = 0;
  ki_add_source(module, &read);
  for (size_t i = 0; i < text->quoted_count; i++)
    (void)ki_add_named_source(module, 0, text->quoted[i].file, text->quoted[i].text,
                              text->quoted[i].text_bytes);
  if (is_too_long)
    kj_report(diagnostics, &module->sources, (kj_location){ 0, 1, 1 }, KJIT_SEVERITY_ERROR,
              KJIT_ERROR_SYNTAX, "the source has %zu bytes, but the maximum is %d",
              text->size_bytes, KJ_MAX_SOURCE_BYTES);
  else if (text->expression) ki_parse_expression(module, 0, text->expression, diagnostics);
  else {
    if (text->is_partial) ki_begin_partial(module, text);
    for (size_t i = 0; i < text->type_count; i++)
      ki_declare_struct_as(module, text->types[i].name, text->types[i].type);
    ki_parse_source(module, 0, diagnostics);
  }
  if (with_imports && !diagnostics->error_count) ki_read_imports(module, diagnostics);
  if (diagnostics->error_count) longjmp(*module->arena.on_failure, KJ_JUMP_ERROR);
}

/* ---- parsing a text ---- */

/* The parser and the verifier recurse over nested code. With KJ_MAX_NESTING levels they need up to
 * 250 KiB of stack in a build by gcc, and more in a build without optimization. */
enum { STACK_BYTES = 1 << 20 };

typedef struct parse_call {
  kjit_module *made;
  const ki_text *text;
  bool verify;
  kj_diagnostics *diagnostics;
} parse_call;

/* Parses a call's text, and reports errors to its diagnostics. data is the parse_call. */
static void run_parse_call(void *data)
{
  const parse_call *call = data;
  kjit_module *made = call->made;
  const ki_text *text = call->text;
  kj_diagnostics *diagnostics = call->diagnostics;
  jmp_buf on_failure;
  made->arena.on_failure = &on_failure;
  /* from here on, the memory limit of a compilation applies */
  uint64_t most_bytes = made->context ? made->context->compile_limits.memory_bytes : KJIT_NO_LIMIT;
  made->arena.most_bytes = most_bytes < SIZE_MAX ? (size_t)most_bytes : 0;
  int jump = setjmp(on_failure);
  if (jump == 0) {
    uint64_t start = kj_clock_ns();
    if (text->builtin_func) read_builtin_func(made, text, diagnostics);
    else read_text(made, text, call->verify, diagnostics);
    if (call->verify) ki_finish_module(made, diagnostics);
    made->parse_time_ns = kj_clock_ns() - start;
  }
  made->arena.on_failure = NULL;
  made->arena.most_bytes = 0;
  if (jump == KJ_JUMP_LIMIT)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_LIMIT,
              "the compilation limit `memory` is %llu bytes, but parsing `%s`, a source with %zu "
              "bytes, needs more",
              (unsigned long long)most_bytes, text->name ? text->name : "module", text->size_bytes);
  if (jump == KJ_JUMP_MEMORY)
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
}

static kjit_status make_module(kjit_module *made, const ki_text *text, bool verify,
                               kj_diagnostics *diagnostics)
{
  parse_call call = { made, text, verify, diagnostics };
  if (!kj_call_with_stack(STACK_BYTES, run_parse_call, &call))
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
  return diagnostics->status;
}

static kjit_status parse_module(kjit_context *context, ki_types *types, const ki_text *text,
                                bool verify, kj_diagnostics *diagnostics, kjit_module **module)
{
  *module = NULL;
  kjit_module *made = ki_create_module(context, types);
  if (!made) {
    kj_report(diagnostics, NULL, (kj_location){ 0 }, KJIT_SEVERITY_ERROR, KJIT_ERROR_MEMORY,
              "out of memory");
    return KJIT_ERROR_MEMORY;
  }
  kjit_status status = make_module(made, text, verify, diagnostics);
  if (status == KJIT_OK) {
    ki_publish_module(made);
    *module = made;
  } else ki_destroy_module(made);
  return status;
}

kjit_status ki_parse_module(kjit_context *context, ki_types *types, const ki_text *text,
                            kj_diagnostics *diagnostics, kjit_module **module)
{
  return parse_module(context, types, text, true, diagnostics, module);
}

kjit_status ki_read_formula(kjit_context *context, const ki_text *text, kj_diagnostics *diagnostics,
                            kjit_module **module)
{
  KJ_ASSERT(text->expression && text->expression->is_formula);
  return parse_module(context, context->types, text, false, diagnostics, module);
}

const ki_expr *ki_formula_tree(const kjit_module *module)
{
  KJ_ASSERT(module->decls.count == 1);
  return module->decls.items[0]->function->body.items[0]->value;
}

kjit_status ki_read_module(ki_types *types, const char *name, const char *text, size_t size_bytes,
                           kj_diagnostics *diagnostics, kjit_module **module)
{
  return parse_module(NULL, types,
                      &(ki_text){ .name = name, .text = text, .size_bytes = size_bytes }, false,
                      diagnostics, module);
}

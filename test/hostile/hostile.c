/* hostile DEVICE FILE [CONTEXT [MILLISECONDS]]: runs hostile kernels that generate.py has made, one
 * after the other in one process. Each must end with one of the statuses of its kind and, unless
 * the status is OK, with a message. After each, a correct kernel is compiled and must compute its
 * result. DEVICE: cpu, cuda, or an architecture such as sm_90, for which they are compiled to PTX
 * only. CONTEXT: a row of `contexts`. MILLISECONDS: the time limit of a launch. At the end all
 * memory, threads and files are released. Times do not decide the outcome, except that a kernel
 * that has not ended after PATIENCE_S counts as hanging.
 *
 * UNSUPPORTED: sanitizer
 * RUN: %python %S/generate.py --each --count 20 --kind endless.,recursion.,printing.,wrong.,malformed.,allocating. > %t.kernels
 * RUN: %programs/hostile cpu %t.kernels usual 10 | FileCheck %s
 * RUN: %programs/hostile sm_90 %t.kernels | FileCheck %s
 * RUN: %python %S/generate.py --each --count 0 --seed 88 --kind growing.,wide.,huge.,deep. > %t.large
 * RUN: %programs/hostile cpu %t.large usual 10 | FileCheck %s
 * RUN: %programs/hostile sm_90 %t.large | FileCheck %s
 * RUN: %if cuda %{ %python %S/generate.py --each --count 20 --kind endless.,recursion.,printing.,wrong.,malformed.,allocating. --device cuda > %t.cuda %}
 * RUN: %if cuda %{ %programs/hostile cuda %t.cuda usual 20 | FileCheck %s %}
 * CHECK: {{^}}0 failures
 */
#include <kjit/kjit.h>
#include <malloc.h>
#include <pthread.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  COUNT = 1000,
  SIDE = 32,
  PATIENCE_S = 120,
  CPU_STACK_BYTES = 128 * 1024,
  GPU_STACK_BYTES = 1024 * 1024
};
/* Limits for messages, and for the text with source lines and carets, because people read them. */
enum { MOST_MESSAGE_BYTES = 8192, MOST_TEXT_BYTES = 64 * 1024 };
/* Memory that allocators and LLVM may keep, independent of the number of kernels. */
enum { MOST_KEPT_BYTES = 4 << 20 };

static int failures;

static uint64_t clock_ms(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the kernels: generate.py says how they are written ---- */

typedef struct source {
  char *name;
  const char *text;
  size_t bytes;
} source;

typedef struct hostile_kernel {
  uint32_t number;
  char *kind, *statuses, *contexts, *entry, *arguments;
  source *sources; /* the first source is the module; it can import the others */
  size_t source_count;
  kjit_launch_config config;
} hostile_kernel;

static void give_up(const char *what)
{
  fprintf(stderr, "%s\n", what);
  exit(2);
}

/* Reads one kernel from the file. Returns false at the end of the file. */
static bool read_kernel(FILE *file, hostile_kernel *k)
{
  unsigned flags;
  kjit_launch_config *c = &k->config;
  *k = (hostile_kernel){ .config.size_bytes = sizeof *c };
  int found = fscanf(file, " kernel %u %ms %ms %ms %zu %ms %u %u %u %u %u %u %lu %u %ms",
                     &k->number, &k->kind, &k->statuses, &k->contexts, &k->source_count, &k->entry,
                     &c->grid[0], &c->grid[1], &c->grid[2], &c->block[0], &c->block[1],
                     &c->block[2], &c->dynamic_shared_bytes, &flags, &k->arguments);
  if (found == EOF) return false;
  if (found != 15) give_up("the file is not one of generate.py's");
  c->flags = flags;
  k->sources = calloc(k->source_count, sizeof *k->sources);
  for (size_t i = 0; i < k->source_count; i++) {
    source *s = &k->sources[i];
    if (fscanf(file, " source %ms %zu", &s->name, &s->bytes) != 2 || fgetc(file) != '\n')
      give_up("a source is missing");
    char *text = malloc(s->bytes + 1);
    if (fread(text, 1, s->bytes, file) != s->bytes) give_up("the file ends too early");
    text[s->bytes] = 0;
    s->text = text;
  }
  return true;
}

static void free_kernel(hostile_kernel *k)
{
  char *texts[] = { k->kind, k->statuses, k->contexts, k->entry, k->arguments };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) free(texts[i]);
  for (size_t i = 0; i < k->source_count; i++) {
    free(k->sources[i].name);
    free((void *)k->sources[i].text);
  }
  free(k->sources);
}

/* Returns whether a word occurs in a text of words separated by `|`. */
static bool is_among(const char *words, const char *word)
{
  size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at++)
    if ((at == words || at[-1] == '|') && (at[length] == 0 || at[length] == '|')) return true;
  return false;
}

/* ---- contexts ---- */

static const hostile_kernel *current;

static int find_import(void *user, const char *importer, const char *name,
                       kjit_import_source *import)
{
  (void)user, (void)importer;
  for (size_t i = 1; i < current->source_count; i++)
    if (strcmp(current->sources[i].name, name) == 0) {
      import->name = name;
      import->text = current->sources[i].text;
      import->text_bytes = current->sources[i].bytes;
      return 1;
    }
  return 0;
}

static size_t printed_bytes;
static void count_lines(void *user, const char *text, size_t size_bytes)
{
  (void)user, (void)text;
  printed_bytes += size_bytes;
}

/* Limits of an application whose users wait 5 seconds at most. Other limits have their defaults. */
static const kjit_compile_limits limits = { .size_bytes = sizeof limits, .time_ns = 5000000000 };

#define CONTEXT(...) \
  { \
    .size_bytes = sizeof(kjit_config), .cache_directory = "", .find_import = find_import, \
    .on_print = count_lines, .interruptible = 1, .compile_limits = &limits, __VA_ARGS__ \
  }
static const struct {
  const char *name;
  kjit_config config;
} contexts[] = {
  { "usual", CONTEXT(.checks = KJIT_CHECK_USUAL) },
  { "all_checks", CONTEXT(.checks = KJIT_CHECK_ALL) },
  { "unchecked", CONTEXT(.checks = KJIT_CHECK_NONE) },
  { "guest", CONTEXT(.trust = KJIT_TRUST_GUEST) },
  { "debug", CONTEXT(.checks = KJIT_CHECK_USUAL, .debug = KJIT_DEBUG_FULL) },
};

static const kjit_config *find_context(const char *name)
{
  for (size_t i = 0; i < sizeof contexts / sizeof *contexts; i++)
    if (strcmp(contexts[i].name, name) == 0) return &contexts[i].config;
  give_up("there is no such context");
  return NULL;
}

/* ---- arguments: each letter of hostile_kernel.arguments stands for one ---- */

static const struct parameter {
  char letter;
  kjit_type type; /* type of a value, or of the elements if rank is not 0 */
  uint32_t rank;
  int64_t shape[2];
  const char *signature;
  int64_t value;
} parameters[] = {
  { 'r', KJIT_I32, 1, { COUNT }, "i32[:] C", 0 },
  { 'x', KJIT_F32, 1, { COUNT }, "f32[:] C", 0 },
  { 'd', KJIT_F64, 1, { COUNT }, "f64[:] C", 0 },
  { 'u', KJIT_U64, 1, { COUNT }, "u64[:] C", 0 },
  { 'm', KJIT_F32, 2, { SIDE, SIDE }, "f32[:, :] C", 0 },
  { 'n', KJIT_I64, 0, { 0 }, "i64", COUNT },
  { 'h', KJIT_I64, 0, { 0 }, "i64", INT64_MAX },
  { 'l', KJIT_I64, 0, { 0 }, "i64", INT64_MIN },
  { 'z', KJIT_I32, 0, { 0 }, "i32", 0 },
  { 'o', KJIT_I32, 0, { 0 }, "i32", -1 },
};
enum { PARAMETER_COUNT = sizeof parameters / sizeof *parameters };

typedef struct world {
  const char *device_name;
  const kjit_config *config;
  uint64_t time_limit_ns;
  bool is_compiling_only, is_gpu;
  kjit_context *context;
  kjit_device *device;
  kjit_array *arrays[PARAMETER_COUNT]; /* the arrays of `parameters`, for each row with a rank */
} world;

static size_t find_parameter(char letter)
{
  for (size_t i = 0; i < PARAMETER_COUNT; i++)
    if (parameters[i].letter == letter) return i;
  give_up("there is no such argument");
  return 0;
}

static void complain(const world *w, const char *format, ...)
{
  va_list list;
  char *text = kjit_copy_diagnostics_text(w->context);
  printf("\n  FAILED %u %s: ", current ? current->number : 0, current ? current->kind : "");
  va_start(list, format);
  vprintf(format, list);
  va_end(list);
  printf("\n%.2000s\n", text ? text : "");
  kjit_free(w->context, text);
  failures++;
}

static void require(const world *w, kjit_status status, const char *what)
{
  if (status == KJIT_OK) return;
  complain(w, "%s: %s", what, kjit_get_status_name(status));
  exit(1);
}

static kjit_status wait_for(const world *w, kjit_status status)
{
  return status == KJIT_OK && w->is_gpu ? kjit_synchronize_device(w->device) : status;
}

/* ---- one kernel ---- */

/* Sets all elements of all arrays to 1, because the previous kernel may have changed them. */
static void fill_arrays(const world *w)
{
  kjit_arg one = kjit_arg_number(1);
  for (size_t i = 0; i < PARAMETER_COUNT; i++) {
    if (!w->arrays[i]) continue;
    kjit_arg array = kjit_arg_array(w->arrays[i]);
    require(w, kjit_fill(w->context, &array, &one, NULL), "filling an array");
  }
}

static kjit_status compile_only(const world *w, kjit_kernel *kernel, const char *arguments)
{
  char *signature = NULL;
  size_t size = 0;
  FILE *text = open_memstream(&signature, &size);
  for (const char *a = arguments; *a; a++)
    fprintf(text, "%s%s", a == arguments ? "" : ", ", parameters[find_parameter(*a)].signature);
  fclose(text);
  kjit_compile_options options = { .size_bytes = sizeof options,
                                   .target = w->device_name,
                                   .checks = w->config->checks & KJIT_CHECK_USUAL,
                                   .debug = w->config->debug,
                                   .facts = "all",
                                   .interruptible = w->config->interruptible };
  void *code = NULL;
  kjit_status status = kjit_compile(kernel, signature, &options, KJIT_STAGE_PTX, &code, &size);
  if (status == KJIT_OK) kjit_free(w->context, code);
  free(signature);
  return status;
}

static kjit_status launch(const world *w, kjit_kernel *kernel, const kjit_launch_config *config,
                          const char *arguments)
{
  size_t count = strlen(arguments);
  kjit_arg *args = calloc(count + 1, sizeof *args);
  for (size_t i = 0; i < count; i++) {
    size_t p = find_parameter(arguments[i]);
    if (w->arrays[p]) args[i] = kjit_arg_array(w->arrays[p]);
    else if (parameters[p].type == KJIT_I32) args[i] = kjit_arg_i32((int32_t)parameters[p].value);
    else args[i] = kjit_arg_i64(parameters[p].value);
  }
  kjit_status status = wait_for(w, kjit_launch(kernel, config, args, count));
  free(args);
  return status;
}

static kjit_status run_text(const world *w, const char *name, const char *text, size_t bytes,
                            const char *entry, const kjit_launch_config *config,
                            const char *arguments)
{
  kjit_module *module = NULL;
  kjit_kernel *kernel = NULL;
  kjit_status status = kjit_parse_module(w->context, name, text, bytes, &module);
  if (status == KJIT_OK) status = kjit_get_kernel(module, entry, &kernel);
  if (status == KJIT_OK)
    status = w->is_compiling_only ? compile_only(w, kernel, arguments)
                                  : launch(w, kernel, config, arguments);
  kjit_release_module(module);
  return status;
}

static bool is_utf8(const char *text)
{
  for (const unsigned char *c = (const unsigned char *)text; *c;) {
    int more = *c < 0x80 ? 0 : *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : 1;
    if ((*c >= 0x80 && *c < 0xc2) || *c > 0xf4) return false;
    for (c++; more > 0; more--, c++)
      if (*c < 0x80 || *c > 0xbf) return false;
  }
  return true;
}

/* Checks that the message of the failed call is one readable line. */
static void check_sentence(const world *w, kjit_status status)
{
  static const char *const bad[] = { "internal error", "LLVM ERROR", "(null)", "Assertion" };
  const kjit_diagnostic *said = NULL; /* the first error; warnings may come before it */
  for (size_t i = 0; (said = kjit_get_diagnostic(w->context, i)); i++)
    if (said->severity == KJIT_SEVERITY_ERROR) break;
  if (!said || !said->message || !said->message[0]) {
    complain(w, "no sentence");
    return;
  }
  const char *message = said->message;
  printf(" %.160s", message);
  if (said->status != status) complain(w, "the message is for another status");
  if (strlen(message) > MOST_MESSAGE_BYTES) complain(w, "%zu bytes of message", strlen(message));
  /* line breaks can come from a kernel's own message or an assembler's log */
  if (strpbrk(message, "\r\b\033")) complain(w, "a control character in the message");
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (strstr(message, bad[i])) complain(w, "`%s` in the message", bad[i]);
  char *text = kjit_copy_diagnostics_text(w->context);
  if (!text) complain(w, "no text");
  if (text && strlen(text) > MOST_TEXT_BYTES) complain(w, "%zu bytes of text", strlen(text));
  if (text && !is_utf8(text)) complain(w, "the text is not UTF-8");
  kjit_free(w->context, text);
}

/* Checks that a new kernel compiles and computes its result. */
static void check_next_kernel(const world *w)
{
  static uint32_t times;
  char text[200];
  int32_t got[COUNT];
  times++;
  snprintf(text, sizeof text,
           "kernel next(r, x) { for i in grid_range(len(r)) { r[i] = i32(i) * %u + i32(x[i]) } }",
           times);
  const kjit_launch_config config = { .size_bytes = sizeof config };
  fill_arrays(w);
  kjit_status status = run_text(w, "next.kir", text, strlen(text), "next", &config, "rx");
  if (status != KJIT_OK) complain(w, "the next kernel: %s", kjit_get_status_name(status));
  if (w->is_compiling_only || status != KJIT_OK) return;
  require(w, kjit_copy_to_host(w->arrays[0], got, sizeof got, NULL), "reading");
  for (uint32_t i = 0; i < COUNT; i++)
    if ((uint32_t)got[i] != i * times + 1) {
      complain(w, "the next kernel computes %d at %u", got[i], i);
      return;
    }
}

static void run_kernel(world *w, const hostile_kernel *k)
{
  const source *module = &k->sources[0];
  kjit_launch_config config = k->config;
  config.time_limit_ns = w->time_limit_ns;
  fill_arrays(w);
  kjit_status status = run_text(w, module->name, module->text, module->bytes, k->entry, &config,
                                strcmp(k->arguments, "-") == 0 ? "" : k->arguments);
  const char *name = kjit_get_status_name(status) + strlen("KJIT_");
  if (status != KJIT_OK) name += strlen("ERROR_");
  printf(" %s", name);
  if (status != KJIT_OK) check_sentence(w, status);
  bool is_expected = is_among(k->statuses, name) || (status == KJIT_OK && w->is_compiling_only) ||
                     (status == KJIT_ERROR_REFUSED && w->config->trust == KJIT_TRUST_GUEST);
  if (!is_expected) complain(w, "expected %s", k->statuses);
  check_next_kernel(w);
}

/* ---- the process ---- */

static _Atomic uint64_t started_ms;

static void *watch(void *unused)
{
  (void)unused;
  for (;;) {
    sleep(1);
    uint64_t start = atomic_load(&started_ms);
    if (!start || clock_ms() - start < PATIENCE_S * 1000) continue;
    printf("\n  FAILED: hangs\n");
    fflush(stdout);
    _exit(3);
  }
}

static void open_world(world *w)
{
  require(w, kjit_create_context(w->config, &w->context), "a context");
  if (w->is_compiling_only) return;
  require(w,
          kjit_get_device(w->context, w->is_gpu ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0,
                          &w->device),
          "a device");
  for (size_t i = 0; i < PARAMETER_COUNT; i++)
    if (parameters[i].rank)
      require(w,
              kjit_create_array(w->device, parameters[i].type, parameters[i].shape,
                                parameters[i].rank, &w->arrays[i]),
              "an array");
}

static void close_world(world *w)
{
  for (size_t i = 0; i < PARAMETER_COUNT; i++) {
    kjit_release_array(w->arrays[i]);
    w->arrays[i] = NULL;
  }
  kjit_destroy_context(w->context);
  w->context = NULL;
}

/* The resources of the process that must be released at the end. */
typedef struct holdings {
  size_t heap_bytes, code_bytes, resident_bytes;
  int threads, files;
} holdings;

static int count_entries(const char *folder)
{
  int count = 0;
  DIR *directory = opendir(folder);
  while (directory && readdir(directory)) count++;
  if (directory) closedir(directory);
  return count;
}

static holdings hold(void)
{
  holdings h = { .threads = count_entries("/proc/self/task"),
                 .files = count_entries("/proc/self/fd") };
  malloc_trim(0);
  struct mallinfo2 heap = mallinfo2();
  h.heap_bytes = heap.uordblks + heap.hblkhd;
  FILE *file = fopen("/proc/self/maps", "r");
  char line[4096];
  size_t first, last, pages = 0;
  char access[5];
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "%zx-%zx %4s", &first, &last, access) == 3 && access[2] == 'x')
      h.code_bytes += last - first;
  if (file) fclose(file);
  file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%*u %zu", &pages) == 1) h.resident_bytes = pages * 4096;
  if (file) fclose(file);
  return h;
}

static size_t get_peak_bytes(void)
{
  size_t kib = 0;
  char line[200];
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (sscanf(line, "VmHWM: %zu", &kib) == 1) break;
  if (file) fclose(file);
  file = fopen("/proc/self/clear_refs", "w"); /* resets the peak of the memory use */
  if (file) fprintf(file, "5");
  if (file) fclose(file);
  return kib * 1024;
}

static void check_holdings(const holdings *before)
{
  holdings after = hold();
  printf("heap %.1f -> %.1f MB, code %.1f -> %.1f MB, resident %.1f -> %.1f MB, threads %d -> %d, "
         "files %d -> %d\n",
         (double)before->heap_bytes / 1e6, (double)after.heap_bytes / 1e6,
         (double)before->code_bytes / 1e6, (double)after.code_bytes / 1e6,
         (double)before->resident_bytes / 1e6, (double)after.resident_bytes / 1e6, before->threads,
         after.threads, before->files, after.files);
  bool is_more = after.heap_bytes > before->heap_bytes + MOST_KEPT_BYTES ||
                 after.code_bytes > before->code_bytes + MOST_KEPT_BYTES ||
                 after.threads > before->threads || after.files > before->files;
  if (is_more) printf("  FAILED: something was left behind\n");
  failures += is_more;
}

typedef struct job {
  world w;
  FILE *file;
  const char *context;
} job;

/* Runs all kernels, in a thread with a small stack. */
static void *run_all(void *data)
{
  job *j = data;
  world *w = &j->w;
  uint32_t count = 0;
  for (int i = 0; i < 2; i++) { /* the first rounds allocate what is created once and kept */
    open_world(w);
    check_next_kernel(w);
    close_world(w);
  }
  holdings before = hold();
  open_world(w);
  get_peak_bytes();
  for (hostile_kernel k; read_kernel(j->file, &k); free_kernel(&k)) {
    if (!is_among(k.contexts, j->context)) continue;
    current = &k;
    printf("%u %s:", k.number, k.kind);
    fflush(stdout); /* flushes the output before abort ends the process */
    uint64_t start = clock_ms();
    atomic_store(&started_ms, start);
    run_kernel(w, &k);
    atomic_store(&started_ms, 0);
    printf(" [%llu ms, %zu MB]\n", (unsigned long long)(clock_ms() - start),
           get_peak_bytes() / 1000000);
    current = NULL;
    count++;
  }
  close_world(w);
  printf("%u kernels\n", count);
  check_holdings(&before);
  return NULL;
}

int main(int argc, char **argv)
{
  if (argc < 3) give_up("usage: hostile DEVICE FILE [CONTEXT [MILLISECONDS]]");
  job j = { .context = argc > 3 ? argv[3] : "usual", .file = fopen(argv[2], "rb") };
  if (!j.file) give_up("the file cannot be read");
  j.w.device_name = argv[1];
  j.w.config = find_context(j.context);
  j.w.time_limit_ns = (uint64_t)(argc > 4 ? atoi(argv[4]) : 20) * 1000000;
  j.w.is_gpu = strcmp(argv[1], "cuda") == 0;
  j.w.is_compiling_only = !j.w.is_gpu && strcmp(argv[1], "cpu") != 0;
  pthread_t watcher, runner;
  pthread_attr_t attributes;
  pthread_create(&watcher, NULL, watch, NULL);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, j.w.is_gpu ? GPU_STACK_BYTES : CPU_STACK_BYTES);
  pthread_create(&runner, &attributes, run_all, &j);
  pthread_join(runner, NULL);
  pthread_attr_destroy(&attributes);
  fclose(j.file);
  printf("%d failures\n", failures);
  return failures != 0;
}

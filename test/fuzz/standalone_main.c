/* Runs a fuzz target without libFuzzer, so that it works with every compiler. First it runs every
 * file of the corpus unchanged, then mutations of the files, which the seed determines. The flags
 * are those of libFuzzer: -runs=N (number of mutated inputs), -seed=S, -dict=FILE, -max_len=BYTES,
 * -max_total_time=SECONDS (0: no limit), -timeout=SECONDS (for one input). Files and folders
 * follow. The same seed and corpus give the same inputs. An input that ends the process is stored
 * as crash-SEED-NUMBER; given as the only file, it runs again. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct text {
  uint8_t *bytes;
  size_t size;
} text;

typedef struct texts {
  text *items;
  size_t count, capacity;
} texts;

static struct {
  unsigned long runs, seed, max_len, max_total_time, timeout;
} options = { 1000, 1, 1 << 16, 60, 30 };

static texts corpus, dictionary;
static uint64_t random_state;
static text current;                     /* the current input; read when the process ends */
static char failure_path[64];            /* path to which the input is written then */
static volatile sig_atomic_t is_running; /* true inside the fuzz target */

static _Noreturn void die(const char *name, const char *what)
{
  fprintf(stderr, "fuzz driver: %s: %s\n", name, what);
  _exit(2);
}

static void *reallocate(void *old, size_t size_bytes)
{
  void *memory = realloc(old, size_bytes ? size_bytes : 1);
  if (!memory) die("memory", "used up");
  return memory;
}

static void add_text(texts *list, const uint8_t *bytes, size_t size)
{
  if (list->count == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 64;
    list->items = reallocate(list->items, list->capacity * sizeof *list->items);
  }
  text item = { reallocate(NULL, size), size };
  if (size) memcpy(item.bytes, bytes, size);
  list->items[list->count++] = item;
}

static void free_texts(texts *list)
{
  for (size_t i = 0; i < list->count; i++) free(list->items[i].bytes);
  free(list->items);
}

/* Corpus and dictionary. */

static text read_file(const char *path)
{
  text content = { NULL, 0 };
  struct stat info;
  FILE *file = fopen(path, "rb");
  if (!file || fstat(fileno(file), &info)) die(path, "cannot be read");
  content.bytes = reallocate(NULL, (size_t)info.st_size);
  content.size = fread(content.bytes, 1, (size_t)info.st_size, file);
  fclose(file);
  return content;
}

static void add_file(const char *path)
{
  text content = read_file(path);
  if (content.size <= options.max_len) add_text(&corpus, content.bytes, content.size);
  free(content.bytes);
}

static int ends_with(const char *name, const char *suffix)
{
  size_t length = strlen(name), suffix_length = strlen(suffix);
  return length >= suffix_length && !strcmp(name + length - suffix_length, suffix);
}

/* Adds a file or the files of a folder, sorted, so that a seed gives the same inputs on every file
 * system. In a folder called corpus all files are added, elsewhere only kernel IR. */
static void add_path(const char *path, int is_named)
{
  struct stat info;
  struct dirent **entries;
  if (stat(path, &info)) die(path, "no such file or folder");
  if (!S_ISDIR(info.st_mode)) {
    if (is_named || ends_with(path, ".kir") || strstr(path, "/corpus/")) add_file(path);
    return;
  }
  int count = scandir(path, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char *child;
    if (entries[i]->d_name[0] != '.' && asprintf(&child, "%s/%s", path, entries[i]->d_name) > 0) {
      add_path(child, 0);
      free(child);
    }
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

/* Reads one token from each line. Skips empty lines and lines that start with ##. */
static void read_dictionary(const char *path)
{
  text content = read_file(path);
  for (size_t i = 0; i < content.size;) {
    uint8_t *line = content.bytes + i, *end = memchr(line, '\n', content.size - i);
    size_t length = end ? (size_t)(end - line) : content.size - i;
    if (length && !(length > 1 && line[0] == '#' && line[1] == '#'))
      add_text(&dictionary, line, length);
    i += length + 1;
  }
  free(content.bytes);
}

/* Mutations. All work on current, which has room for max_len bytes. */

/* xorshift64*: the same numbers on every machine. */
static uint64_t next_random(void)
{
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545f4914f6cdd1dull;
}

static size_t random_below(size_t bound)
{
  return bound ? (size_t)((next_random() >> 16) % bound) : 0;
}

static void replace_range(size_t at, size_t removed, const uint8_t *bytes, size_t added)
{
  if (current.size - removed + added > options.max_len) return;
  memmove(current.bytes + at + added, current.bytes + at + removed, current.size - at - removed);
  if (added) memcpy(current.bytes + at, bytes, added);
  current.size += added - removed;
}

static void flip_bit(void)
{
  if (current.size) current.bytes[random_below(current.size)] ^= (uint8_t)(1u << random_below(8));
}

static void set_byte(void)
{
  static const char likely[] = "\n {}()[],.:;=+-*/%<>&|^~!?@#\"'_0129afx\\\t\r";
  if (!current.size) return;
  current.bytes[random_below(current.size)] =
    random_below(4) ? (uint8_t)likely[random_below(sizeof likely - 1)] : (uint8_t)next_random();
}

static void remove_range(void)
{
  size_t at = random_below(current.size), rest = current.size - at;
  replace_range(at, random_below((rest < 32 ? rest : 32) + 1), NULL, 0);
}

static void repeat_range(void)
{
  uint8_t copy[64];
  if (!current.size) return;
  size_t from = random_below(current.size), rest = current.size - from,
         size = 1 + random_below(rest < sizeof copy ? rest : sizeof copy);
  memcpy(copy, current.bytes + from, size);
  for (size_t times = 1 + random_below(8); times; times--) replace_range(from, 0, copy, size);
}

static void insert_token(void)
{
  if (!dictionary.count) return;
  const text *token = &dictionary.items[random_below(dictionary.count)];
  replace_range(random_below(current.size + 1), 0, token->bytes, token->size);
}

static int is_word(uint8_t byte)
{
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
         (byte >= 'A' && byte <= 'Z') || byte == '_' || byte >= 128;
}

/* Replaces a word, or another byte, by another token. This keeps more of the syntax than changes of
 * bytes, so the inputs reach later stages. */
static void replace_token(void)
{
  if (!dictionary.count || !current.size) return;
  const text *token = &dictionary.items[random_below(dictionary.count)];
  size_t first = random_below(current.size), last = first + 1;
  if (is_word(current.bytes[first])) {
    while (first > 0 && is_word(current.bytes[first - 1])) first--;
    while (last < current.size && is_word(current.bytes[last])) last++;
  }
  replace_range(first, last - first, token->bytes, token->size);
}

/* Removes a line, or moves it to another position. */
static void move_line(void)
{
  uint8_t *start, *end, *copy;
  if (!current.size) return;
  start = current.bytes + random_below(current.size);
  while (start > current.bytes && start[-1] != '\n') start--;
  end = memchr(start, '\n', (size_t)(current.bytes + current.size - start));
  size_t at = (size_t)(start - current.bytes),
         size = end ? (size_t)(end - start) + 1 : current.size - at;
  copy = reallocate(NULL, size);
  memcpy(copy, start, size);
  if (random_below(2)) replace_range(at, size, NULL, 0);
  size_t target = random_below(current.size + 1);
  while (target > 0 && current.bytes[target - 1] != '\n') target--;
  if (random_below(4)) replace_range(target, 0, copy, size);
  free(copy);
}

static void mix_inputs(void)
{
  const text *other = &corpus.items[random_below(corpus.count)];
  size_t from = random_below(other->size), size = random_below(other->size - from + 1),
         at = random_below(current.size + 1);
  replace_range(at, random_below(2) ? current.size - at : 0, other->bytes + from, size);
}

static void (*const mutations[])(void) = { flip_bit,      set_byte,     remove_range,
                                           repeat_range,  insert_token, replace_token,
                                           replace_token, move_line,    mix_inputs };

static void mutate(void)
{
  const text *start = &corpus.items[random_below(corpus.count)];
  current.size = 0;
  replace_range(0, 0, start->bytes, start->size);
  for (size_t steps = 1 + random_below(5); steps; steps--)
    mutations[random_below(sizeof mutations / sizeof *mutations)]();
}

/* Saving the input if it ends the process. */

static void keep_input(void)
{
  static const char note[] =
    "fuzz driver: the process ended inside the fuzz target; its input is kept in ";
  int file = open(failure_path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0) return;
  size_t done = 0;
  for (ssize_t written = 1; done < current.size && written > 0;
       done += written > 0 ? (size_t)written : 0)
    written = write(file, current.bytes + done, current.size - done);
  close(file);
  if (write(2, note, sizeof note - 1) < 0 || write(2, failure_path, strlen(failure_path)) < 0 ||
      write(2, "\n", 1) < 0)
    return;
}

static void on_signal(int number)
{
  signal(number, SIG_DFL);
  if (is_running) keep_input();
  raise(number);
}

/* LLVM calls exit() if it cannot continue; this counts as a failure, too. */
static void on_exit_inside_target(void)
{
  if (!is_running) return;
  keep_input();
  _exit(1);
}

static void catch_ends(void)
{
  static uint8_t stack[1 << 16]; /* stack for signal handlers, so that a stack overflow is caught */
  stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
  struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  /* a sanitizer reports the other signals and then aborts */
  static const int signals[] = { SIGABRT, SIGALRM };
#else
  static const int signals[] = { SIGABRT, SIGALRM, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP };
#endif
  sigaltstack(&alternate, NULL);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    sigaction(signals[i], &action, NULL);
  atexit(on_exit_inside_target);
}

/* The target gets a copy of exactly the input's size, so that a sanitizer detects a read after its
 * end. */
static void run_current(unsigned long number)
{
  uint8_t *exact = reallocate(NULL, current.size);
  if (current.size) memcpy(exact, current.bytes, current.size);
  snprintf(failure_path, sizeof failure_path, "crash-%lu-%lu", options.seed, number);
  alarm((unsigned)options.timeout);
  is_running = 1;
  LLVMFuzzerTestOneInput(exact, current.size);
  is_running = 0;
  alarm(0);
  free(exact);
}

static int set_option(const char *argument)
{
  static const struct {
    const char *prefix;
    unsigned long *value;
  } numbers[] = { { "-runs=", &options.runs },
                  { "-seed=", &options.seed },
                  { "-max_len=", &options.max_len },
                  { "-max_total_time=", &options.max_total_time },
                  { "-timeout=", &options.timeout } };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    size_t length = strlen(numbers[i].prefix);
    if (strncmp(argument, numbers[i].prefix, length)) continue;
    *numbers[i].value = strtoul(argument + length, NULL, 10);
    return 1;
  }
  return 0;
}

int main(int count, char **arguments)
{
  unsigned long number = 0, kept;
  time_t start = time(NULL);
  for (int i = 1; i < count; i++) {
    if (!strncmp(arguments[i], "-dict=", 6)) read_dictionary(arguments[i] + 6);
    else if (arguments[i][0] == '-' && !set_option(arguments[i])) die(arguments[i], "unknown flag");
    else if (arguments[i][0] != '-') add_path(arguments[i], 1);
  }
  if (!corpus.count) add_text(&corpus, (const uint8_t *)"", 0);
  current.bytes = reallocate(NULL, options.max_len);
  random_state = (options.seed + 1) * 0x9e3779b97f4a7c15ull;
  catch_ends();
  for (; number < corpus.count; number++) {
    current.size = 0;
    replace_range(0, 0, corpus.items[number].bytes, corpus.items[number].size);
    run_current(number);
  }
  for (kept = number; number - kept < options.runs; number++) {
    if (options.max_total_time && time(NULL) - start >= (time_t)options.max_total_time) break;
    mutate();
    run_current(number);
  }
  printf("%lu inputs: %lu kept, %lu mutated, seed %lu, %lld s\n", number, kept, number - kept,
         options.seed, (long long)(time(NULL) - start));
  free(current.bytes);
  free_texts(&corpus);
  free_texts(&dictionary);
  return 0;
}

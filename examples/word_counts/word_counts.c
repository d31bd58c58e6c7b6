/* word_counts.c: counts the words of a text. It uses only algorithms over whole arrays and no
 * kernel.
 *
 *   word_counts cpu|cuda [--all] FILE...
 *
 * A word is a maximal run of letters, digits and bytes above 127 (UTF-8 text of other alphabets);
 * ASCII capitals count as small letters. The program prints the number of words and the most
 * frequent words, or with --all every word, as lines `COUNT tab WORD`. Words with equal counts are
 * in the order of their first occurrence.
 *
 * kjit_nonzero finds the positions where words begin, from a func of the text. A 64-bit hash of
 * each word is the key of a sort of these places. Runs of equal keys are the words, and their
 * lengths are the counts: kjit_run_lengths. Two more sorts order the words by first position and
 * then, stably, by count. Different words can have equal hashes. A reduction compares neighbours
 * letter by letter; if it finds such words, the program tries another hash. */
#include <inttypes.h>
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP = 10, MOST_HASHES = 8 };

static const char source[] =
  "func is_letter(c) { return (c | 32 >= 97 and c | 32 <= 122) or (c >= 48 and c <= 57) or c > 127 "
  "}\n"
  "func small(c) { return c >= 65 and c <= 90 ? c | 32 : c }\n"
  "func begins(i, text) { return is_letter(text[i]) and (i == 0 or not is_letter(text[i - 1])) }\n"
  "func is_in_word(i, text) { return i < len(text) and is_letter(text[i]) }\n"
  "\n"
  "# The key of word k, by FNV-1a; `start` makes it one hash of many.\n"
  "func key(k, places, text, start: u64) {\n"
  "  var h = start\n"
  "  var i = places[k]\n"
  "  while is_in_word(i, text) {\n"
  "    h = (h ^ u64(small(text[i]))) * 0x100000001b3u64\n"
  "    i += 1\n"
  "  }\n"
  "  return h ^ (h >> 29)\n"
  "}\n"
  "\n"
  "# Whether word k of the sorted ones has the key of the one before it, and is another word.\n"
  "func collides(k, keys, places, text) {\n"
  "  if k == 0 { return false }\n"
  "  if keys[k] != keys[k - 1] { return false }\n"
  "  var i = places[k]\n"
  "  var j = places[k - 1]\n"
  "  while is_in_word(i, text) and is_in_word(j, text) {\n"
  "    if small(text[i]) != small(text[j]) { return true }\n"
  "    i += 1\n"
  "    j += 1\n"
  "  }\n"
  "  return is_in_word(i, text) or is_in_word(j, text)\n"
  "}\n"
  "\n"
  "# Where the word of a run is first: sorts are stable, so that places of a run ascend.\n"
  "func first_place(run, starts, places) { return places[starts[run]] }\n"
  "func same(x) { return x }\n";

static kjit_context *context;
static kjit_device *device;
static kjit_module *module;

#define TRY(call) try((call), #call)
static void try(kjit_status status, const char *call)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "%s\n%s\n", call, kjit_copy_diagnostics_text(context));
  exit(EXIT_FAILURE);
}

/* ---- the text ---- */

typedef struct text {
  unsigned char *bytes;
  int64_t count;
} text;

/* Appends a file and a blank, so that no word continues in the next file. */
static int read_file(const char *path, text *t)
{
  char part[1 << 16];
  FILE *file = fopen(path, "rb");
  size_t read;
  int is_fine = file != NULL;
  while (is_fine && (read = fread(part, 1, sizeof part, file)) > 0) {
    unsigned char *longer = realloc(t->bytes, (size_t)t->count + read + 1);
    is_fine = longer != NULL;
    if (!is_fine) break;
    t->bytes = longer;
    memcpy(t->bytes + t->count, part, read);
    t->count += (int64_t)read;
    t->bytes[t->count] = ' ';
  }
  if (file && ferror(file)) is_fine = 0;
  if (file) fclose(file);
  if (is_fine && t->count) t->count++;
  return is_fine;
}

/* ---- arrays and operands ---- */

static kjit_array *make(kjit_type type, int64_t count)
{
  kjit_array *array;
  TRY(kjit_create_array(device, type, &count, 1, &array));
  return array;
}

/* Returns a view of the first `count` elements. */
static kjit_array *head(kjit_array *array, int64_t count)
{
  kjit_array *view;
  const kjit_array_slice slice = { 0, count, 1 };
  TRY(kjit_slice_array(array, &slice, 1, &view));
  return view;
}

static int64_t read_count(const kjit_array *array)
{
  int64_t count;
  TRY(kjit_copy_to_host(array, &count, sizeof count, NULL));
  return count;
}

static kjit_function *find(const char *name)
{
  kjit_function *function;
  TRY(kjit_get_function(module, name, &function));
  return function;
}

/* ---- counting ---- */

typedef struct counts {
  int64_t words, distinct;
  int64_t *count, *place; /* for each distinct word, the most frequent word first */
} counts;

/* Sorts the positions by the hashes of their words and stores the sorted hashes in keys. Returns
 * whether equal hashes belong to equal words. */
static int sort_words(kjit_array *letters, kjit_array *places, int64_t words, uint64_t start,
                      kjit_array *sorted_keys, kjit_array *sorted_places)
{
  kjit_array *keys = make(KJIT_U64, words), *found = make(KJIT_I64, 1);
  const kjit_arg of_key[] = { kjit_arg_array(places), kjit_arg_array(letters),
                              kjit_arg_u64(start) };
  kjit_operand key = kjit_operand_function(find("key"), of_key, 3, &words, 1),
               unsorted = kjit_operand_array(keys), values = kjit_operand_array(places),
               result = kjit_operand_array(sorted_keys),
               result_values = kjit_operand_array(sorted_places);
  TRY(kjit_map(context, &unsorted, 1, find("same"), &key, 1, NULL));
  TRY(kjit_sort_pairs(context, &result, &result_values, &unsorted, &values, NULL, NULL));

  const kjit_arg of_collision[] = { kjit_arg_array(sorted_keys), kjit_arg_array(sorted_places),
                                    kjit_arg_array(letters) };
  kjit_operand collision = kjit_operand_function(find("collides"), of_collision, 3, &words, 1),
               number = kjit_operand_array(found);
  kjit_operator count_nonzero = kjit_operator_named("count_nonzero");
  TRY(kjit_reduce(context, &number, &collision, &count_nonzero, NULL));
  int64_t collisions = read_count(found);
  kjit_release_array(keys);
  kjit_release_array(found);
  return collisions == 0;
}

/* Finds the runs of equal keys. Computes their number, their lengths and the first position of each
 * word, and orders them with the most frequent word first. */
static void count_runs(kjit_array *sorted_keys, kjit_array *sorted_places, counts *c)
{
  kjit_array *keys = make(KJIT_U64, c->words), *lengths = make(KJIT_I64, c->words),
             *starts = make(KJIT_I64, c->words), *number = make(KJIT_I64, 1);
  kjit_operand x = kjit_operand_array(sorted_keys), first_of_run = kjit_operand_array(keys),
               length = kjit_operand_array(lengths), start = kjit_operand_array(starts),
               count = kjit_operand_array(number);
  TRY(kjit_run_lengths(context, &first_of_run, &length, &start, &count, &x, NULL, NULL));
  c->distinct = read_count(number);

  /* sorted by first position and then, stably, by count */
  kjit_array *some_lengths = head(lengths, c->distinct),
             *by_place[] = { make(KJIT_I64, c->distinct), make(KJIT_I64, c->distinct) },
             *by_count[] = { make(KJIT_I64, c->distinct), make(KJIT_I64, c->distinct) };
  const kjit_arg of_place[] = { kjit_arg_array(starts), kjit_arg_array(sorted_places) };
  kjit_operand place = kjit_operand_function(find("first_place"), of_place, 2, &c->distinct, 1),
               run_length = kjit_operand_array(some_lengths),
               places = kjit_operand_array(by_place[0]), counted = kjit_operand_array(by_place[1]);
  TRY(kjit_sort_pairs(context, &places, &counted, &place, &run_length, NULL, NULL));
  kjit_algorithm_options options = { .size_bytes = sizeof options };
  options.flags = KJIT_ALGORITHM_DESCENDING;
  kjit_operand most = kjit_operand_array(by_count[0]), where = kjit_operand_array(by_count[1]);
  TRY(kjit_sort_pairs(context, &most, &where, &counted, &places, NULL, &options));

  size_t bytes = (size_t)c->distinct * sizeof(int64_t);
  c->count = malloc(bytes);
  c->place = malloc(bytes);
  if (!c->count || !c->place) exit(EXIT_FAILURE);
  TRY(kjit_copy_to_host(by_count[0], c->count, bytes, NULL));
  TRY(kjit_copy_to_host(by_count[1], c->place, bytes, NULL));
  kjit_array *const made[] = { keys,        lengths,     starts,      number,     some_lengths,
                               by_place[0], by_place[1], by_count[0], by_count[1] };
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) kjit_release_array(made[i]);
}

static void count_words(const text *t, counts *c)
{
  kjit_array *letters = make(KJIT_U8, t->count), *all = make(KJIT_I64, t->count),
             *number = make(KJIT_I64, 1);
  TRY(kjit_copy_from_host(letters, t->bytes, (size_t)t->count, NULL));
  const kjit_arg of_begin = kjit_arg_array(letters);
  kjit_operand begins = kjit_operand_function(find("begins"), &of_begin, 1, &t->count, 1),
               places = kjit_operand_array(all), count = kjit_operand_array(number);
  TRY(kjit_nonzero(context, &places, &count, &begins, NULL));
  c->words = read_count(number);
  if (c->words) {
    kjit_array *some = head(all, c->words), *sorted_keys = make(KJIT_U64, c->words),
               *sorted_places = make(KJIT_I64, c->words);
    uint64_t hash = 0;
    while (!sort_words(letters, some, c->words, 0xcbf29ce484222325u + hash, sorted_keys,
                       sorted_places)) {
      if (++hash < MOST_HASHES) continue;
      fprintf(stderr, "different words have equal hashes, by %d hashes\n", MOST_HASHES);
      exit(EXIT_FAILURE);
    }
    count_runs(sorted_keys, sorted_places, c);
    kjit_release_array(some);
    kjit_release_array(sorted_keys);
    kjit_release_array(sorted_places);
  }
  kjit_release_array(letters);
  kjit_release_array(all);
  kjit_release_array(number);
}

/* ---- output ---- */

static int is_letter(int c)
{
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c > 127;
}

static void print_words(const text *t, const counts *c, int64_t most)
{
  for (int64_t k = 0; k < c->distinct && k < most; k++) {
    printf("%" PRId64 "\t", c->count[k]);
    for (int64_t i = c->place[k]; i < t->count && is_letter(t->bytes[i]); i++) {
      int letter = t->bytes[i];
      putchar(letter >= 'A' && letter <= 'Z' ? letter | 32 : letter);
    }
    putchar('\n');
  }
}

int main(int argc, char **argv)
{
  int prints_all = argc > 2 && !strcmp(argv[2], "--all");
  int first = prints_all ? 3 : 2;
  int is_cpu = argc > 1 && !strcmp(argv[1], "cpu");
  text t = { 0 };
  counts c = { 0 };
  if (argc <= first) {
    fprintf(stderr, "usage: word_counts cpu|cuda [--all] FILE...\n");
    return 2;
  }
  if (!is_cpu && strcmp(argv[1], "cuda") != 0) {
    fprintf(stderr, "word_counts: the device: expected cpu or cuda, not '%s'\n", argv[1]);
    return 2;
  }
  for (int i = first; i < argc; i++) {
    if (read_file(argv[i], &t)) continue;
    fprintf(stderr, "%s cannot be read\n", argv[i]);
    return EXIT_FAILURE;
  }
  if (kjit_create_context(NULL, &context) != KJIT_OK) return EXIT_FAILURE;
  TRY(kjit_get_device(context, is_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA, 0, &device));
  TRY(kjit_parse_module(context, "words", source, sizeof source - 1, &module));
  if (t.count) count_words(&t, &c);
  printf("%" PRId64 " words, %" PRId64 " different ones\n", c.words, c.distinct);
  print_words(&t, &c, prints_all ? c.distinct : TOP);
  kjit_release_module(module);
  kjit_destroy_context(context);
  free(t.bytes);
  free(c.count);
  free(c.place);
  return EXIT_SUCCESS;
}

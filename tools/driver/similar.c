#define _GNU_SOURCE
#include <driver/similar.h>

#include <driver/error.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

enum { MOST_LETTERS = 64 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Optimal string alignment distance. Rows correspond to prefixes of a; only the last three rows are
 * kept. */
static size_t find_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
  size_t rows[3][MOST_LETTERS + 1];
  for (size_t j = 0; j <= b_length; j++) rows[0][j] = j;
  for (size_t i = 1; i <= a_length; i++) {
    size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b_length; j++) {
      row[j] = least(least(row[j - 1], above[j]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], before[j - 2] + 1);
    }
  }
  return rows[a_length % 3][b_length];
}

void tool_offer_name(tool_similar *similar, const char *name)
{
  size_t length = strlen(name), most = least(similar->length, length) / 3;
  if (length > MOST_LETTERS || similar->length > MOST_LETTERS) return;
  size_t distance = find_distance(similar->name, similar->length, name, length);
  if (distance > (most ? most : 1) || distance >= length) return;
  if (similar->nearest && distance >= similar->distance) return;
  similar->nearest = name;
  similar->distance = distance;
}

char *tool_similar_text(const tool_similar *similar)
{
  return similar->nearest ? tool_format("; did you mean '%s'?", similar->nearest)
                          : tool_copy_text("", 0);
}

/* ---- options ---- */

static bool has_row(const struct argp_option *row)
{
  return row->name || row->key || row->doc || row->group;
}

/* Options that argp itself defines. */
static const struct argp_option common[] = {
  { .name = "help" }, { .name = "usage" }, { .name = "version" }, { 0 }
};

/* Finds a long option by an unambiguous prefix, like getopt_long. Returns NULL if no option or
 * several options match; *is_known tells these cases apart. */
static const struct argp_option *find_long(const struct argp_option *table, const char *name,
                                           size_t length, bool *is_known)
{
  const struct argp_option *found = NULL, *lists[] = { table, common };
  *is_known = false;
  for (size_t l = 0; l < 2; l++)
    for (const struct argp_option *row = lists[l]; has_row(row); row++) {
      if (!row->name || strncmp(row->name, name, length) != 0) continue;
      *is_known = true;
      found = row;
      if (!row->name[length]) return row;
    }
  return found;
}

/* Returns whether "-abX" takes the next argument as the value of its last option. */
static bool takes_next(const struct argp_option *table, const char *letters)
{
  for (; *letters; letters++)
    for (const struct argp_option *row = table; has_row(row); row++)
      if (row->key == *letters && row->arg) return !letters[1];
  return false;
}

static void refuse_option(const struct argp_option *table, const char *name, size_t length)
{
  tool_similar similar = { .name = name, .length = length };
  const struct argp_option *lists[] = { table, common };
  for (size_t l = 0; l < 2; l++)
    for (const struct argp_option *row = lists[l]; has_row(row); row++)
      if (row->name) tool_offer_name(&similar, row->name);
  if (!similar.nearest) return;
  fprintf(stderr,
          "%s: unrecognized option '--%.*s'; did you mean '--%s'?\n"
          "Try `%s --help' or `%s --usage' for more information.\n",
          program_invocation_short_name, (int)length, name, similar.nearest,
          program_invocation_short_name, program_invocation_short_name);
  exit(TOOL_EXIT_USAGE);
}

/* Ends the program with an error if a long option is unknown and a similar option exists. */
static void check_option_names(const struct argp_option *table, int argc, char **argv)
{
  for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
    const char *text = argv[i];
    if (text[0] != '-' || !text[1]) continue;
    if (text[1] != '-') {
      i += takes_next(table, text + 1);
      continue;
    }
    bool is_known;
    size_t length = strcspn(text + 2, "=");
    const struct argp_option *row = find_long(table, text + 2, length, &is_known);
    if (!is_known) refuse_option(table, text + 2, length);
    bool has_value = row && row->arg && !(row->flags & OPTION_ARG_OPTIONAL);
    i += has_value && !text[2 + length];
  }
}

/* Sets the column of the descriptions in --help to the right of all options. If an option is longer
 * than the column, glibc starts a new line. When glibc's buffer of 200 bytes is nearly full, it
 * writes the indentation of such a line too early. */
static void place_meanings(void)
{
  const char *given = getenv("ARGP_HELP_FMT");
  if (!given || !*given) setenv("ARGP_HELP_FMT", "opt-doc-col=36", 1);
}

void tool_parse_options(const struct argp *parser, int argc, char **argv, void *input)
{
  argp_err_exit_status = TOOL_EXIT_USAGE;
  check_option_names(parser->options, argc, argv);
  place_meanings();
  argp_parse(parser, argc, argv, 0, NULL, input);
}

/* kjit-cache: lists, verifies, trims and clears a directory of the disk cache, and makes files of
 * compiled kernels. */
#define _GNU_SOURCE
#include <argp.h>
#include <driver/file.h>
#include <driver/remark.h>
#include <driver/similar.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool.h"

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
KJIT_API const char *argp_program_version =
  "kjit-cache " TEXT(KJIT_VERSION_MAJOR) "." TEXT(KJIT_VERSION_MINOR) "." TEXT(KJIT_VERSION_PATCH);

static const char documentation[] =
  "Shows and cleans the disk cache of kjit, and writes compiled kernel files for other machines.\v"
  "COMMAND is one of\n"
  "  list          shows each entry: size, time since the last use, target, kernel, signature\n"
  "  list FILE     shows the entries of a compiled kernel file; list --shipped shows the file "
  "installed with kjit\n"
  "  verify        removes damaged files; the exit status is 1 if there were any\n"
  "  trim SIZE     removes the least recently used entries until SIZE (500M, 2G, 100000) is left\n"
  "  clear         removes all entries\n"
  "  build LIST... compiles the kernels of the lists for each --target and writes --output\n"
  "  merge FILE... merges the entries of several files into --output\n"
  "\n"
  "kjit-cache ignores other files in the directory. Programs can use the cache at the same time.\n"
  "\n"
  "Exit status:\n"
  "  0  success\n"
  "  1  verify or list found damage\n"
  "  2  the command line or a list is wrong\n"
  "  3  a kernel of a list does not compile\n"
  "  4  the directory or a file cannot be read, written or removed";

static error_t add_text(cache_texts *texts, char *text)
{
  char **grown = realloc(texts->items, (texts->count + 1) * sizeof *grown);
  if (!grown) return ENOMEM;
  texts->items = grown;
  texts->items[texts->count++] = text;
  return 0;
}

enum { KEY_SHIPPED = 1000, KEY_MACHINE_CODE };

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  cache_options *o = state->input;
  switch (key) {
  case 'c': o->directory = text; return 0;
  case 'o': o->output = text; return 0;
  case 't': return add_text(&o->targets, text);
  case KEY_SHIPPED: o->is_shipped = true; return 0;
  case KEY_MACHINE_CODE: o->ptxas = text ? text : ""; return 0;
  case ARGP_KEY_ARG:
    if (o->command) return add_text(&o->operands, text);
    o->command = text;
    return 0;
  case ARGP_KEY_END:
    if (!o->command)
      argp_error(state, "expected a command: list, verify, trim, clear, build or merge");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- sizes and ages ---- */

static const char units[] = " KMGT";

void cache_print_size(uint64_t size_bytes)
{
  double value = (double)size_bytes;
  size_t unit = 0;
  for (; value >= 1024 && units[unit + 1]; unit++) value /= 1024;
  if (unit) printf("%.1f %ciB", value, units[unit]);
  else printf("%.0f bytes", value);
}

static void print_age(uint64_t used_ns)
{
  static const struct {
    uint64_t seconds;
    const char *name;
  } steps[] = { { 86400, "d" }, { 3600, "h" }, { 60, "min" }, { 1, "s" } };
  uint64_t now = (uint64_t)time(NULL), used = used_ns / 1000000000u,
           age = now > used ? now - used : 0;
  size_t i = 0;
  while (i < 3 && age < steps[i].seconds) i++;
  printf("%5" PRIu64 " %-3s", age / steps[i].seconds, steps[i].name);
}

/* ---- commands ---- */

static void list_entry(void *user, const kjit_cache_entry *entry)
{
  cache_tool *t = user;
  t->count++;
  t->bytes += entry->file_bytes;
  printf("%10" PRIu64 "  ", entry->file_bytes);
  print_age(entry->used_ns);
  if (entry->version)
    printf("  %-7s %s(%s)  kjit %s  %s\n", entry->target, entry->kernel, entry->signature,
           entry->version, entry->name);
  else printf("  damaged %s\n", entry->name);
}

static bool list(cache_tool *t)
{
  if (t->options.is_shipped) return cache_list_file(t, NULL);
  if (t->options.operands.count) return cache_list_file(t, t->options.operands.items[0]);
  const char *directory = kjit_get_cache_directory(t->context);
  kjit_status status = kjit_visit_cache(t->context, list_entry, t);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, "list");
  printf("%" PRIu64 " entr%s, ", t->count, t->count == 1 ? "y" : "ies");
  cache_print_size(t->bytes);
  printf(" in %s\n", directory);
  return true;
}

static void verify_entry(void *user, const kjit_cache_entry *entry)
{
  cache_tool *t = user;
  t->count++;
  if (entry->version) return;
  t->damaged++;
  kjit_status status = kjit_remove_cache_entry(t->context, entry->name);
  if (status == KJIT_OK) printf("damaged, removed: %s\n", entry->name);
  else tool_fail_kjit(&t->error, t->context, status, "verify");
}

static bool verify(cache_tool *t)
{
  kjit_status status = kjit_visit_cache(t->context, verify_entry, t);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, "verify");
  printf("%" PRIu64 " files, %" PRIu64 " damaged\n", t->count, t->damaged);
  return !t->error.text;
}

static bool trim(cache_tool *t, uint64_t limit_bytes)
{
  kjit_status status = kjit_trim_cache(t->context, limit_bytes, &t->count, &t->bytes);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, t->options.command);
  printf("removed %" PRIu64 " entr%s, ", t->count, t->count == 1 ? "y" : "ies");
  cache_print_size(t->bytes);
  printf("\n");
  return true;
}

static bool trim_to_size(cache_tool *t)
{
  uint64_t limit_bytes;
  const char *size = t->options.operands.items[0];
  if (!tool_parse_size(size, &limit_bytes))
    return tool_fail(&t->error, TOOL_EXIT_USAGE,
                     "trim: expected a size such as 500M or 2G, not '%s'", size);
  return trim(t, limit_bytes);
}

static bool clear(cache_tool *t) { return trim(t, 0); }

/* ---- the command ---- */

typedef struct command {
  const char *name;
  bool (*run)(cache_tool *t);
  size_t fewest, most;  /* minimum and maximum number of operands */
  const char *operands; /* description of the expected operands */
  bool has_directory;   /* false for a command with the option --output */
} command;

static const command commands[] = {
  { "list", list, 0, 1, "at most one file", true },
  { "verify", verify, 0, 0, "nothing after it", true },
  { "trim", trim_to_size, 1, 1, "a size such as 500M or 2G", true },
  { "clear", clear, 0, 0, "nothing after it", true },
  { "build", cache_build, 1, SIZE_MAX, "a list of kernels", false },
  { "merge", cache_merge, 1, SIZE_MAX, "files of compiled kernels", false },
};

static bool check_options(cache_tool *t, const command *c)
{
  const cache_options *o = &t->options;
  size_t count = o->operands.count;
  if (count < c->fewest || count > c->most || (count && o->is_shipped))
    return tool_fail(&t->error, TOOL_EXIT_USAGE, "%s: expected %s", c->name, c->operands);
  if (o->is_shipped && c->run != list)
    return tool_fail(&t->error, TOOL_EXIT_USAGE, "--shipped is an option of list");
  if (o->targets.count && c->run != cache_build)
    return tool_fail(&t->error, TOOL_EXIT_USAGE, "--target is an option of build");
  if (o->ptxas && c->run != cache_build)
    return tool_fail(&t->error, TOOL_EXIT_USAGE, "--machine-code is an option of build");
  if (!c->has_directory != (o->output != NULL))
    return tool_fail(&t->error, TOOL_EXIT_USAGE,
                     o->output ? "--output is an option of build and merge"
                               : "%s: expected --output and the file to write",
                     c->name);
  return true;
}

static const command *find_command(cache_tool *t)
{
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
    if (!strcmp(commands[i].name, t->options.command))
      return check_options(t, &commands[i]) ? &commands[i] : NULL;
  tool_fail(&t->error, TOOL_EXIT_USAGE,
            "expected list, verify, trim, clear, build or merge, not '%s'", t->options.command);
  return NULL;
}

/* Shows only remarks about code that is not stored. Other remarks are about the kernels
 * themselves. */
static void show_left_out(void *user, const kjit_diagnostic *diagnostic)
{
  if (!strncmp(diagnostic->message, "kjit_export_cache", strlen("kjit_export_cache")))
    tool_show_remark(user, diagnostic);
}

bool cache_create_context(cache_tool *t, const char *target, kjit_context **context)
{
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = config.shipped_cache = "";
  /* libclc supplies the math functions. With a toolkit's libdevice, the cache key would need the
   * version of libdevice, which libdevice does not contain. */
  config.libdevice_path = "libclc";
  config.target = target;
  config.ptxas = target ? t->options.ptxas : NULL;
  config.on_diagnostic = show_left_out;
  kjit_status status = kjit_create_context(&config, context);
  return status == KJIT_OK || tool_fail(&t->error, TOOL_EXIT_DEVICE, "creating a context: %s",
                                        kjit_get_status_name(status));
}

static bool open_directory(cache_tool *t, bool lists_file)
{
  if (t->options.directory && !tool_check_cache_folder(&t->error, t->options.directory))
    return false;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = t->options.directory;
  kjit_status status = kjit_create_context(&config, &t->context);
  if (status != KJIT_OK)
    return tool_fail(&t->error, TOOL_EXIT_DEVICE, "creating a context: %s",
                     kjit_get_status_name(status));
  return lists_file || kjit_get_cache_directory(t->context) ||
         tool_fail(&t->error, TOOL_EXIT_USAGE,
                   "there is no home directory (use --cache to name a directory)");
}

static bool run_command(cache_tool *t)
{
  const command *c = find_command(t);
  if (!c) return false;
  bool lists_file = c->run == list && (t->options.is_shipped || t->options.operands.count);
  return (c->has_directory ? open_directory(t, lists_file)
                           : cache_create_context(t, NULL, &t->context)) &&
         c->run(t);
}

int main(int argc, char **argv)
{
  static const struct argp_option option_table[] = {
    { "cache", 'c', "DIR", 0,
      "Disk cache directory (default $XDG_CACHE_HOME/kjit or ~/.cache/kjit)", 0 },
    { "output", 'o', "FILE", 0, "Output file of build and merge", 0 },
    { "target", 't', "TARGET", 0,
      "Target of build: sm_75 and up, sm_90a, x86-64-v2, x86-64-v3 or x86-64-v4 (on aarch64 "
      "armv8-a). Can be repeated",
      0 },
    { "machine-code", KEY_MACHINE_CODE, "PTXAS", OPTION_ARG_OPTIONAL,
      "With build, also keep GPU machine code made by PTXAS (default ptxas on PATH or in a CUDA "
      "toolkit)",
      0 },
    { "shipped", KEY_SHIPPED, 0, 0, "List the compiled kernel file installed with kjit", 0 },
    { 0 },
  };
  static const struct argp parser = { option_table,  parse_option, "COMMAND [SIZE | FILE...]",
                                      documentation, NULL,         NULL,
                                      NULL };
  cache_tool t = { 0 };
  tool_watch_output();
  tool_parse_options(&parser, argc, argv, &t.options);
  run_command(&t);
  tool_exit exit_status = tool_report(&t.error);
  if (exit_status == TOOL_EXIT_OK && t.damaged) exit_status = TOOL_EXIT_CHECK;
  if (t.context) kjit_destroy_context(t.context);
  free(t.options.operands.items);
  free(t.options.targets.items);
  return exit_status;
}

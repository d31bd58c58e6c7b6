/* kjit-cache: lists, verifies, trims and clears a directory of the disk cache. */
#define _GNU_SOURCE
#include <argp.h>
#include <driver/file.h>
#include <driver/similar.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)
KJIT_API const char *argp_program_version =
  "kjit-cache " TEXT(KJIT_VERSION_MAJOR) "." TEXT(KJIT_VERSION_MINOR) "." TEXT(KJIT_VERSION_PATCH);

static const char documentation[] =
  "Shows and tidies the directory where kjit keeps machine code.\v"
  "COMMAND is one of\n"
  "  list          each entry: size, age since it was last used, target, kernel, signature\n"
  "  verify        removes damaged files; exit status 1 when there were any\n"
  "  trim SIZE     removes the least recently used entries until at most SIZE is left: 500M, 2G, "
  "100000\n"
  "  clear         removes all entries\n"
  "\n"
  "Other files in the directory are left alone. It may be in use meanwhile.\n"
  "\n"
  "Exit status: 0 success; 1 verify found damaged files; 2 wrong command line; 4 the directory "
  "cannot be read, or a file cannot be removed.";

typedef struct options {
  const char *directory, *command, *size;
} options;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
  options *o = state->input;
  switch (key) {
  case 'c': o->directory = text; return 0;
  case ARGP_KEY_ARG:
    if (o->size) argp_error(state, "expected nothing after the command, not '%s'", text);
    if (o->command) o->size = text;
    else o->command = text;
    return 0;
  case ARGP_KEY_END:
    if (!o->command) argp_error(state, "expected a command: list, verify, trim or clear");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

typedef struct tool {
  options options;
  tool_error error;
  kjit_context *context;
  uint64_t count, bytes, damaged;
} tool;

/* ---- sizes and ages ---- */

static const char units[] = " KMGT";

static void print_size(uint64_t size_bytes)
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
  tool *t = user;
  t->count++;
  t->bytes += entry->file_bytes;
  printf("%10" PRIu64 "  ", entry->file_bytes);
  print_age(entry->used_ns);
  if (entry->version)
    printf("  %-7s %s(%s)  kjit %s  %s\n", entry->target, entry->kernel, entry->signature,
           entry->version, entry->name);
  else printf("  damaged %s\n", entry->name);
}

static bool list(tool *t)
{
  const char *directory = kjit_get_cache_directory(t->context);
  kjit_status status = kjit_visit_cache(t->context, list_entry, t);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, "list");
  printf("%" PRIu64 " entr%s, ", t->count, t->count == 1 ? "y" : "ies");
  print_size(t->bytes);
  printf(" in %s\n", directory);
  return true;
}

static void verify_entry(void *user, const kjit_cache_entry *entry)
{
  tool *t = user;
  t->count++;
  if (entry->version) return;
  t->damaged++;
  kjit_status status = kjit_remove_cache_entry(t->context, entry->name);
  if (status == KJIT_OK) printf("damaged, removed: %s\n", entry->name);
  else tool_fail_kjit(&t->error, t->context, status, "verify");
}

static bool verify(tool *t)
{
  kjit_status status = kjit_visit_cache(t->context, verify_entry, t);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, "verify");
  printf("%" PRIu64 " files, %" PRIu64 " damaged\n", t->count, t->damaged);
  return !t->error.text;
}

static bool trim(tool *t, uint64_t limit_bytes)
{
  kjit_status status = kjit_trim_cache(t->context, limit_bytes, &t->count, &t->bytes);
  if (status != KJIT_OK) return tool_fail_kjit(&t->error, t->context, status, t->options.command);
  printf("removed %" PRIu64 " entr%s, ", t->count, t->count == 1 ? "y" : "ies");
  print_size(t->bytes);
  printf("\n");
  return true;
}

static bool trim_to_size(tool *t)
{
  uint64_t limit_bytes;
  if (!tool_parse_size(t->options.size, &limit_bytes))
    return tool_fail(&t->error, TOOL_EXIT_USAGE,
                     "trim: expected a size such as 500M or 2G, not '%s'", t->options.size);
  return trim(t, limit_bytes);
}

static bool clear(tool *t) { return trim(t, 0); }

static bool run_command(tool *t)
{
  static const struct {
    const char *name;
    bool (*run)(tool *t);
    bool takes_size;
  } commands[] = { { "list", list, false },
                   { "verify", verify, false },
                   { "trim", trim_to_size, true },
                   { "clear", clear, false } };
  const options *o = &t->options;
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    if (strcmp(commands[i].name, o->command)) continue;
    if (commands[i].takes_size != (o->size != NULL))
      return tool_fail(&t->error, TOOL_EXIT_USAGE, "%s: expected %s", o->command,
                       commands[i].takes_size ? "a size such as 500M or 2G" : "nothing after it");
    return commands[i].run(t);
  }
  return tool_fail(&t->error, TOOL_EXIT_USAGE, "expected list, verify, trim or clear, not '%s'",
                   o->command);
}

static bool create_context(tool *t)
{
  if (t->options.directory && !tool_check_cache_folder(&t->error, t->options.directory))
    return false;
  kjit_config config = { .size_bytes = sizeof config };
  config.cache_directory = t->options.directory;
  kjit_status status = kjit_create_context(&config, &t->context);
  if (status != KJIT_OK)
    return tool_fail(&t->error, TOOL_EXIT_DEVICE, "creating a context: %s",
                     kjit_get_status_name(status));
  return kjit_get_cache_directory(t->context) ||
         tool_fail(&t->error, TOOL_EXIT_USAGE,
                   "there is no home directory: --cache names the directory");
}

int main(int argc, char **argv)
{
  static const struct argp_option option_table[] = {
    { "cache", 'c', "DIR", 0,
      "The directory; default: the user's, $XDG_CACHE_HOME/kjit or ~/.cache/kjit", 0 },
    { 0 },
  };
  static const struct argp parser = { option_table,  parse_option, "COMMAND [SIZE]",
                                      documentation, NULL,         NULL,
                                      NULL };
  tool t = { 0 };
  tool_watch_output();
  tool_parse_options(&parser, argc, argv, &t.options);
  if (create_context(&t)) run_command(&t);
  tool_exit exit_status = tool_report(&t.error);
  if (exit_status == TOOL_EXIT_OK && t.damaged) exit_status = TOOL_EXIT_CHECK;
  if (t.context) kjit_destroy_context(t.context);
  return exit_status;
}

#define _GNU_SOURCE
#include <driver/remark.h>

#include <errno.h>
#include <stdio.h>

void tool_show_remark(void *user, const kjit_diagnostic *d)
{
  static _Thread_local kjit_severity explained; /* what a note belongs to */
  (void)user;
  if (d->severity != KJIT_SEVERITY_NOTE) explained = d->severity;
  if (explained == KJIT_SEVERITY_ERROR) return;
  static const char *const names[] = { "error", "warning", "remark", "note" };
  flockfile(stderr);
  if (d->file && d->line) fprintf(stderr, "%s:%u:%u: ", d->file, d->line, d->column);
  else fprintf(stderr, "%s: ", program_invocation_short_name);
  fprintf(stderr, "%s: %s\n", names[d->severity], d->message);
  if (d->source_line && d->column) fprintf(stderr, "  %s\n  %*s^\n", d->source_line, (int)d->column - 1, "");
  funlockfile(stderr);
}

#define _GNU_SOURCE
#include <driver/remark.h>

#include <errno.h>
#include <stdio.h>

void tool_show_print(void *user, const char *text, size_t size_bytes)
{
  (void)user;
  fwrite(text, 1, size_bytes, stdout); /* errors of the stream are checked at the end of the
                                        * program */
}

void tool_show_remark(void *user, const kjit_diagnostic *d)
{
  static _Thread_local kjit_severity explained; /* severity of the diagnostic that a following note
                                                 * belongs to */
  (void)user;
  if (d->severity != KJIT_SEVERITY_NOTE) explained = d->severity;
  if (explained == KJIT_SEVERITY_ERROR) return;
  char *text = kjit_copy_diagnostic_text(d);
  if (text)
    fprintf(stderr, "%s%s%s", d->file ? "" : program_invocation_short_name, d->file ? "" : ": ",
            text);
  kjit_free(NULL, text);
}

#include "support/fork.h"

#include <pthread.h>

_Atomic uint32_t kj_forks;

const kjit_diagnostic kj_forked_diagnostic = {
  .severity = KJIT_SEVERITY_ERROR,
  .status = KJIT_ERROR_FORKED,
  .message = "the context was made before this process was forked from another one; make a context "
             "in this process"
};

static void count_fork(void) { atomic_fetch_add(&kj_forks, 1); }

static void watch(void) { (void)pthread_atfork(NULL, NULL, count_fork); }

void kj_watch_forks(void)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}

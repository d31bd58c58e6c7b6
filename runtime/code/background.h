/* Work beside the host's threads: compilations that a launch does not wait for, and signatures
 * given ahead of time. The threads of a context start as there is work, at most
 * kjit_config.compile_threads of them. */
#ifndef KJ_DISPATCH_BACKGROUND_H
#define KJ_DISPATCH_BACKGROUND_H

#include "code/specialization.h"

typedef struct kj_job {
  struct kj_job *next;
  /* Does the work and frees the job. is_given_up: the context ends, nothing is to be done but
   * telling whoever waits. */
  void (*run)(struct kj_job *job, bool is_given_up);
} kj_job;

/* False: out of memory, no thread to be had, or the context ends; the job is still the caller's. */
bool kj_queue_job(kj_runtime *runtime, kj_job *job);
/* This thread is one of those that do the jobs: what it queued and then waited for, nobody might
 * ever do. */
bool kj_is_in_background(const kj_runtime *runtime);
/* Who waits for an entry does its job on the spot where that is still queued: nobody waits for what
 * stands before it, nor for a thread that is the waiting one. */
void kj_hurry(kj_runtime *runtime, const kjit_specialization *entry);
/* Copies what a compilation needs of the call and queues it; the entry is PENDING. False as above.
 */
bool kj_compile_later(const kj_call *call, kjit_specialization *entry);
/* Ends the threads after the jobs under way; those not begun are given up. */
void kj_stop_background(kj_runtime *runtime);

#endif

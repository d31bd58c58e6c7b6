/* The table of actions of random programs. An action works on the arrays, streams, events and
 * graphs of an actor, and five random numbers determine it. An action without suitable objects does
 * nothing, so any part of a program can be left out. */
#ifndef ORACLE_RANDOM_H
#define ORACLE_RANDOM_H

#include "oracle_memory_actions.h"
#include "oracle_order_actions.h"

typedef struct random_action {
  const char *name;
  void (*run)(random_actor *actor, random_numbers x);
  /* features: the program needs one of them for this action; 0 means that no feature is needed */
  uint32_t weight, features;
} random_action;

static const random_action random_actions[] = {
  { "stream", do_stream, 8, 0 },
  { "many streams", do_many_streams, 1, USES_MANY_STREAMS },
  { "record", do_record, 5, USES_EVENTS },
  { "wait event", do_wait_event, 5, USES_EVENTS },
  { "ask event", do_ask_event, 2, USES_EVENTS },
  { "synchronize", do_synchronize, 3, 0 },
  { "callback", do_callback, 2, USES_EVENTS },
  { "progress", do_progress, 2, 0 },
  { "array", do_array, 16, 0 },
  { "release", do_release, 10, 0 },
  { "view", do_view, 6, USES_VIEWS },
  { "like", do_like, 2, USES_VIEWS },
  { "from", do_from, 2, USES_COPIES },
  { "launch", do_launch, 20, 0 },
  { "alias", do_alias, 3, USES_WRAPPED },
  { "module", do_module, 6, USES_MODULES },
  { "fill", do_fill, 5, USES_COPIES },
  { "copy", do_copy, 10, USES_COPIES },
  { "host copy", do_host_copy, 5, USES_COPIES },
  { "prepare", do_prepare, 3, USES_PREPARED },
  { "run", do_run, 5, USES_PREPARED },
  { "begin", do_begin, 4, USES_CAPTURES },
  { "end", do_end, 4, USES_CAPTURES },
  { "launch graph", do_launch_graph, 5, USES_CAPTURES },
  { "update graph", do_update_graph, 1, USES_CAPTURES },
  { "drop graph", do_drop_graph, 2, USES_CAPTURES },
  { "begin by itself", do_hosts_begin, 4, USES_HOST_CAPTURES },
  { "end by itself", do_hosts_end, 4, USES_HOST_CAPTURES },
  { "take", do_take, 5, USES_DLPACK },
  { "give", do_give, 5, USES_DLPACK },
  { "process", do_process, 4, USES_PROCESSES },
  { "trim", do_trim, 1, 0 },
  { "reset", do_reset, 1, USES_RESETS },
};
enum { RANDOM_ACTIONS = sizeof random_actions / sizeof *random_actions };

#endif

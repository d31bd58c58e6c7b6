/* Actions of random programs on streams, events, captures, graphs and devices. */
#ifndef ORACLE_ORDER_ACTIONS_H
#define ORACLE_ORDER_ACTIONS_H

#include "oracle_actor.h"

/* ---- streams and events ---- */

static void end_hosts_capture(random_actor *actor, uint32_t launches);

static void drop_stream(random_actor *actor, world_stream *stream)
{
  if (is_captured_by_host(actor, stream)) end_hosts_capture(actor, 0);
  for (uint32_t i = 0; i < CAPTURES; i++)
    if (actor->captures[i].stream == stream) actor->captures[i] = (random_capture){ 0 };
  world_destroy_stream(stream);
}

static void do_stream(random_actor *actor, random_numbers x)
{
  world_stream *stream = &actor->streams[x[0] % STREAMS];
  if (stream->stream) drop_stream(actor, stream);
  else
    *stream = world_make_stream(pick_device(actor, x[1]), x[2] & 1,
                                actor->features & USES_WRAPPED && x[3] % 3 == 0);
}

static void do_many_streams(random_actor *actor, random_numbers x)
{
  uint32_t device = pick_device(actor, x[0]);
  pthread_mutex_lock(&oracle.mutex);
  bool has_many = oracle.stream_count > ORACLE_STREAMS / 2;
  pthread_mutex_unlock(&oracle.mutex);
  if (has_many) return;
  for (uint32_t i = 0; i < 55 + x[1] % 8; i++) {
    world_stream stream = world_make_stream(device, x[2] & 1, false);
    world_destroy_stream(&stream);
  }
}

static void do_record(random_actor *actor, random_numbers x)
{
  kjit_stream *stream;
  uint32_t i = x[0] % EVENTS, device = pick_device(actor, x[1]);
  if (!actor->events[i].event) {
    actor->events[i].device = device;
    if (WORLD_CALL(kjit_create_event, world.devices[device], &actor->events[i].event) != KJIT_OK)
      actor->events[i].event = NULL;
  }
  if (!actor->events[i].event) return;
  if (x[3] % 8 == 0) {
    WORLD_END(kjit_destroy_event, actor->events[i].event);
    actor->events[i].event = NULL;
  } else if (pick_stream(actor, actor->events[i].device, x[2], true, &stream)) {
    (void)WORLD_CALL(kjit_record_event, actor->events[i].event, stream);
  }
}

/* Returns NULL if the event was not recorded in a capture that is still running. */
static const oracle_capture *capture_of_event(const kjit_event *event)
{
  const oracle_event *native = kjit_get_native_event(event);
  pthread_mutex_lock(&oracle.mutex);
  const oracle_capture *capture = native ? oracle_capture_of(native->capture) : NULL;
  pthread_mutex_unlock(&oracle.mutex);
  return capture;
}

static void do_wait_event(random_actor *actor, random_numbers x)
{
  kjit_stream *stream;
  uint32_t i = x[0] % EVENTS, device = pick_device(actor, x[1]);
  if (!actor->events[i].event || !pick_stream(actor, device, x[2], true, &stream)) return;
  if (!stream) device = actor->events[i].device;
  if (!stream && has_blocking_capture(device)) return;
  /* By this wait the stream would join a capture, and other threads could then not use the default
   * stream; see do_begin. */
  if (oracle.is_threaded && world_native(device, stream)->is_blocking &&
      capture_of_event(actor->events[i].event))
    return;
  oracle_here.joins = world_native(device, stream);
  /* the wait breaks the capture if the event was recorded outside of it */
  oracle_here.may_break = true;
  (void)WORLD_CALL(kjit_wait_event, stream, actor->events[i].event);
}

static void do_ask_event(random_actor *actor, random_numbers x)
{
  kjit_event *event = actor->events[x[0] % EVENTS].event;
  if (!event) return;
  /* kjit does not know captures that the program has begun itself, so the program does not ask
   * about them */
  const oracle_capture *capture = capture_of_event(event);
  if (capture && capture->is_hosts) return;
  if (x[1] & 1) (void)WORLD_CALL(kjit_query_event, event);
  else (void)WORLD_CALL(kjit_synchronize_event, event);
}

static void do_synchronize(random_actor *actor, random_numbers x)
{
  uint32_t device = pick_device(actor, x[0]);
  kjit_stream *stream;
  if (actor->hosts && actor->hosts->device == device) return;
  if (x[1] % 4 == 0) {
    (void)world_synchronize_device(device);
  } else if (pick_stream(actor, device, x[2], true, &stream) && stream) {
    if (x[1] % 4 == 1) (void)WORLD_CALL(kjit_query_stream, stream);
    else (void)world_synchronize(stream, world_native(device, stream));
  }
}

static void ignore(void *user) { (void)user; }
static void do_callback(random_actor *actor, random_numbers x)
{
  kjit_stream *stream;
  uint32_t device = pick_device(actor, x[0]);
  if (pick_stream(actor, device, x[1], true, &stream))
    (void)WORLD_CALL(kjit_add_host_callback, world.devices[device], stream, ignore, NULL);
}

/* Lets a thread of the driver run one host function. */
static void do_progress(random_actor *actor, random_numbers x)
{
  (void)actor, (void)x;
  world_begin("a host function");
  pthread_mutex_lock(&oracle.mutex);
  oracle_run_function();
  pthread_mutex_unlock(&oracle.mutex);
  (void)world_end(KJIT_OK);
}

/* ---- captures and graphs ---- */

static void do_begin(random_actor *actor, random_numbers x)
{
  random_capture *capture = &actor->captures[x[0] % CAPTURES];
  world_stream *stream = &actor->streams[x[1] % STREAMS];
  if (capture->stream || !stream->stream || stream->native->capture) return;
  if (oracle.is_threaded && stream->native->is_blocking) return;
  if (WORLD_CALL(kjit_begin_capture, stream->stream) != KJIT_OK) return;
  *capture = (random_capture){ .stream = stream, .capture = stream->native->capture };
  capture->graph.device = stream->device;
}

static void do_end(random_actor *actor, random_numbers x)
{
  random_capture *capture = &actor->captures[x[0] % CAPTURES];
  world_graph *graph = &actor->graphs[x[1] % GRAPHS];
  if (!capture->stream) return;
  world_graph made = capture->graph;
  kjit_stream *stream = capture->stream->stream;
  *capture = (random_capture){ 0 };
  if (WORLD_CALL(kjit_end_capture, stream, &made.graph) != KJIT_OK) {
    /* if memory was exhausted, the capture still runs */
    if (kjit_is_capturing(stream)) (void)WORLD_CALL(kjit_end_capture, stream, &made.graph);
    if (!made.graph) return;
  }
  if (WORLD_CALL(kjit_instantiate_graph, made.graph, &made.executable) != KJIT_OK)
    made.executable = NULL;
  world_destroy_graph(graph);
  *graph = made;
}

static void do_launch_graph(random_actor *actor, random_numbers x)
{
  world_graph *graph = &actor->graphs[x[0] % GRAPHS];
  kjit_stream *stream;
  if (!graph->executable || !pick_stream(actor, graph->device, x[1], true, &stream)) return;
  if (world_native(graph->device, stream)->capture) return;
  (void)world_launch_graph(graph, stream);
}

static void do_update_graph(random_actor *actor, random_numbers x)
{
  world_graph *to = &actor->graphs[x[0] % GRAPHS], *from = &actor->graphs[x[1] % GRAPHS];
  if (!to->executable || !from->graph || to == from) return;
  if (WORLD_CALL(kjit_update_graph, to->executable, from->graph) != KJIT_OK) return;
  for (uint32_t i = 0; i < from->count; i++) world_keep(to, from->memories[i]);
}

static void do_drop_graph(random_actor *actor, random_numbers x)
{
  world_graph *graph = &actor->graphs[x[0] % GRAPHS];
  if (x[1] & 1) {
    world_destroy_graph(graph);
  } else if (graph->graph) {
    WORLD_END(kjit_destroy_graph, graph->graph);
    graph->graph = NULL;
  }
}

/* The program captures a wrapped stream by the driver's call and launches the graph itself. It
 * keeps the memory that the graph uses until it has waited for the graph. */
static void do_hosts_begin(random_actor *actor, random_numbers x)
{
  enum { RELAXED = 2 };
  world_stream *stream = &actor->streams[x[0] % STREAMS];
  if (actor->hosts || !stream->stream || !stream->is_wrapped || stream->native->capture) return;
  if (stream->native->gone || (oracle.is_threaded && stream->native->is_blocking)) return;
  oracle_here.context = &fake_primary[stream->device];
  oracle_trace("  the program captures %s\n", oracle_stream_text(stream->native));
  if (oracle.is_threaded) pthread_rwlock_wrlock(&world_calls);
  int result = oracle_cuStreamBeginCapture(stream->native, RELAXED);
  if (oracle.is_threaded) pthread_rwlock_unlock(&world_calls);
  if (!result) {
    actor->hosts = stream;
    actor->hosts_device = stream->device;
  }
}

static void end_hosts_capture(random_actor *actor, uint32_t launches)
{
  void *graph = NULL, *executable = NULL;
  world_stream *stream = actor->hosts;
  if (!stream) return;
  actor->hosts = NULL;
  oracle_here.context = &fake_primary[actor->hosts_device];
  oracle_trace("  the program's capture ends\n");
  if (!stream->native->gone && !oracle_cuStreamEndCapture(stream->native, &graph) && graph &&
      !oracle_cuGraphInstantiate(&executable, graph, 0)) {
    for (uint32_t i = 0; i < actor->held_count; i++) {
      world_order(actor->held[i].memory, stream->native);
      if (world_is_lost(actor->held[i].memory)) launches = 0;
    }
    for (uint32_t i = 0; i < launches; i++) (void)oracle_cuGraphLaunch(executable, stream->native);
    (void)oracle_cuStreamSynchronize(stream->native);
  }
  for (uint32_t i = 0; i < actor->held_count; i++) world_release_array(&actor->held[i]);
  actor->held_count = 0;
}

static void do_hosts_end(random_actor *actor, random_numbers x)
{
  end_hosts_capture(actor, x[0] % 3);
}

/* ---- devices ---- */

static void do_trim(random_actor *actor, random_numbers x)
{
  if (actor->hosts) return;
  WORLD_END(kjit_trim_memory, world.devices[pick_device(actor, x[0])], x[1] % 3 * 1000);
}

static void do_reset(random_actor *actor, random_numbers x)
{
  uint32_t device = pick_device(actor, x[0]);
  if (oracle.is_threaded || (actor->hosts && actor->hosts->device == device)) return;
  world.generations[device]++;
  (void)WORLD_CALL(kjit_reset_device, world.devices[device]);
  for (uint32_t i = 0; i < ORACLE_DEVICES; i++) {
    if (i == device) continue;
    (void)WORLD_CALL(kjit_enable_peer_access, world.devices[device], world.devices[i]);
    (void)WORLD_CALL(kjit_enable_peer_access, world.devices[i], world.devices[device]);
  }
  for (uint32_t i = 0; i < CAPTURES; i++)
    if (actor->captures[i].stream && actor->captures[i].stream->device == device)
      actor->captures[i] = (random_capture){ 0 };
}

#endif

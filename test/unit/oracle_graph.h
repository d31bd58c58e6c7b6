/* Part of oracle_driver.h: operations, captures and graphs. The order of captured operations is
 * only used to check that all streams of the capture join the first stream again. A launched graph
 * is one operation of its stream. */
#ifndef ORACLE_GRAPH_H
#define ORACLE_GRAPH_H

enum { ORACLE_ACCESSES = 24, ORACLE_NODES = 64 };

typedef struct oracle_module {
  struct oracle_module *next;
  const char *gone;
  uint32_t device;
  oracle_block uses; /* as of memory */
} oracle_module;
static oracle_module *oracle_modules;

/* An operation that is queued on a stream, or captured. */
typedef struct oracle_operation {
  const char *call;
  oracle_module *module; /* of a kernel */
  void (*function)(void *user);
  void *user;
  uint32_t count;
  struct {
    oracle_block *block;
    uint32_t owner;
  } accesses[ORACLE_ACCESSES];
} oracle_operation;

typedef struct oracle_graph {
  struct oracle_graph *next;
  const char *gone;
  uint32_t device;
  uint32_t count;
  oracle_operation *nodes;
} oracle_graph;
static oracle_graph *oracle_graphs;

typedef struct oracle_capture {
  struct oracle_capture *next;
  uint64_t number;
  oracle_stream *origin;
  oracle_graph *graph;
  bool is_hosts; /* the program has begun the capture, not kjit */
  const char *broken;
} oracle_capture;
static oracle_capture *oracle_captures; /* under way */

static void oracle_add_function(const oracle_stream *stream, void (*function)(void *user),
                                void *user);

/* Adds an access. Ignores addresses of memory that the oracle does not track. */
static void oracle_add_access(oracle_operation *operation, const void *address)
{
  oracle_block *block = oracle_find_block(address);
  if (!block) return;
  for (uint32_t i = 0; i < operation->count; i++)
    if (operation->accesses[i].block == block) return;
  if (operation->count == ORACLE_ACCESSES) abort();
  operation->accesses[operation->count].block = block;
  operation->accesses[operation->count++].owner = oracle_owner_of(block);
}

/* ---- captures ---- */

static oracle_capture *oracle_capture_of(uint64_t number)
{
  oracle_capture *capture = oracle_captures;
  while (capture && capture->number != number) capture = capture->next;
  return capture;
}

/* Marks a capture as broken, so that ending it fails. */
static void oracle_break_capture(oracle_capture *capture, const char *how)
{
  if (oracle_here.call && !oracle_here.may_break &&
      (!capture->is_hosts || oracle.checks_host_captures))
    oracle_violation("the capture of %s is broken: %s", oracle_stream_text(capture->origin), how);
  oracle_trace("      the capture of %s is broken: %s\n", oracle_stream_text(capture->origin), how);
  if (!capture->broken) capture->broken = how;
}

/* Breaks the captures of a device. If `all` is true, this includes captures of non-blocking
 * streams. */
static bool oracle_break_captures_of(uint32_t device, bool all, const char *how)
{
  bool has_some = false;
  for (uint32_t i = 0; i < oracle.stream_count; i++) {
    const oracle_stream *stream = oracle.streams[i];
    if (!stream->capture || stream->device != device || !(all || stream->is_blocking)) continue;
    oracle_break_capture(stream->capture, how);
    has_some = true;
  }
  return has_some;
}

/* Checks whether work on a stream is allowed. On a captured stream only work that can be captured
 * is allowed. The default stream is not allowed while a stream that is ordered with it is captured.
 * No stream of a failed device is allowed, even if another device is current. */
static int oracle_look_at(const oracle_stream *stream, const char *call)
{
  if (oracle.is_faulty[stream->device]) return CUDA_ILLEGAL_ADDRESS;
  if (stream->capture) {
    oracle_break_capture(stream->capture, call);
    return CUDA_CAPTURE_UNSUPPORTED;
  }
  if (stream->is_legacy && oracle_break_captures_of(stream->device, false, call))
    return CUDA_CAPTURE_IMPLICIT;
  return 0;
}

static int oracle_capture_operation(oracle_stream *stream, const oracle_operation *operation)
{
  oracle_graph *graph = stream->capture->graph;
  if (graph->count == ORACLE_NODES) return CUDA_OUT_OF_MEMORY;
  stream->captured.at[stream->index]++;
  graph->nodes[graph->count++] = *operation;
  /* the program keeps the code of its own captures loaded */
  if (stream->capture->is_hosts) graph->nodes[graph->count - 1].module = NULL;
  oracle_trace("      %s is captured on %s\n", operation->call, oracle_stream_text(stream));
  return 0;
}

static void oracle_do(oracle_stream *stream, const oracle_operation *operation)
{
  for (uint32_t i = 0; i < operation->count; i++) {
    oracle_block *block = operation->accesses[i].block;
    oracle_trace("        uses %s of owner %u\n", oracle_block_text(block),
                 operation->accesses[i].owner);
    oracle_use_block(block, stream, operation->accesses[i].owner, operation->call);
  }
  if (operation->module) oracle_use_block(&operation->module->uses, stream, 1, operation->call);
  if (operation->function) oracle_add_function(stream, operation->function, operation->user);
}

static int oracle_queue(oracle_stream *stream, const oracle_operation *operation)
{
  if (stream->capture) return oracle_capture_operation(stream, operation);
  ORACLE_TRY(oracle_look_at(stream, operation->call));
  oracle_tick(stream);
  oracle_trace("      %s is operation %u of %s\n", operation->call, stream->clock.at[stream->index],
               oracle_stream_text(stream));
  oracle_do(stream, operation);
  return 0;
}

/* A stream waits for an event that was recorded in a capture. */
static int oracle_join_stream(oracle_stream *stream, uint64_t number, const oracle_clock *clock)
{
  oracle_capture *capture = oracle_capture_of(number);
  if (!capture) return CUDA_CAPTURED_EVENT;
  if (stream->capture && stream->capture != capture) {
    oracle_break_capture(stream->capture, "a stream of it waits for another capture");
    return CUDA_CAPTURE_ISOLATION;
  }
  if (!stream->capture) {
    if (oracle_here.call && oracle_here.joins != stream)
      oracle_violation("%s becomes part of the capture of %s", oracle_stream_text(stream),
                       oracle_stream_text(capture->origin));
    stream->capture = capture;
    memset(&stream->captured, 0, sizeof stream->captured);
    oracle_trace("      %s joins the capture of %s\n", oracle_stream_text(stream),
                 oracle_stream_text(capture->origin));
  }
  oracle_join(&stream->captured, clock);
  return 0;
}

static bool oracle_has_blocking_capture(uint32_t device)
{
  for (uint32_t i = 0; i < oracle.stream_count; i++) {
    const oracle_stream *stream = oracle.streams[i];
    if (stream->capture && stream->is_blocking && stream->device == device) return true;
  }
  return false;
}
/* As documented, the call fails for the default stream while a stream that is ordered with it is
 * captured, and the capture continues. */
static int oracle_cuStreamIsCapturing(void *handle, int *state)
{
  ORACLE_CALL();
  const oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  if (stream->is_legacy && oracle_has_blocking_capture(stream->device))
    return CUDA_CAPTURE_IMPLICIT;
  *state = stream->capture != NULL;
  return 0;
}
static int oracle_cuStreamBeginCapture(void *handle, int mode)
{
  static uint64_t count;
  (void)mode;
  ORACLE_CALL();
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  if (stream->is_legacy || stream->capture) return CUDA_INVALID_VALUE;
  oracle_capture *capture = calloc(1, sizeof *capture);
  oracle_graph *graph = calloc(1, sizeof *graph);
  if (!capture || !graph || !(graph->nodes = calloc(ORACLE_NODES, sizeof *graph->nodes))) abort();
  graph->device = stream->device;
  *capture = (oracle_capture){ .next = oracle_captures,
                               .number = ++count,
                               .origin = stream,
                               .graph = graph,
                               .is_hosts = !oracle_here.call };
  oracle_captures = capture;
  stream->capture = capture;
  memset(&stream->captured, 0, sizeof stream->captured);
  oracle_trace("      cuStreamBeginCapture on %s\n", oracle_stream_text(stream));
  oracle_call_out(oracle_call_hook, &oracle_after_begin);
  oracle_pause();
  return 0;
}

static void oracle_drop_capture(oracle_capture *capture)
{
  oracle_capture **at = &oracle_captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  for (uint32_t i = 0; i < oracle.stream_count; i++)
    if (oracle.streams[i]->capture == capture) oracle.streams[i]->capture = NULL;
}
static void oracle_drop_captures_of(uint32_t device)
{
  for (oracle_capture *capture = oracle_captures, *next; capture; capture = next) {
    next = capture->next;
    if (capture->origin->device == device) oracle_drop_capture(capture);
  }
}

/* The capture ends even if the call returns an error. */
static int oracle_cuStreamEndCapture(void *handle, void **graph)
{
  ORACLE_SCOPE(false);
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  oracle_capture *capture = stream->capture;
  if (!capture || capture->origin != stream) return CUDA_INVALID_VALUE;
  bool is_joined = true;
  for (uint32_t i = 0; i < oracle.stream_count; i++)
    if (oracle.streams[i]->capture == capture &&
        oracle.streams[i]->captured.at[i] > stream->captured.at[i])
      is_joined = false;
  oracle_drop_capture(capture);
  *graph = NULL;
  if (capture->broken) return CUDA_CAPTURE_INVALIDATED;
  if (!is_joined) return CUDA_CAPTURE_UNJOINED;
  capture->graph->next = oracle_graphs;
  oracle_graphs = capture->graph;
  *graph = capture->graph;
  return 0;
}

/* ---- graphs ---- */

static oracle_graph *oracle_graph_of(void *handle, const char *call)
{
  oracle_graph *graph = handle;
  if (graph->gone) oracle_violation("%s of a graph that is gone: %s", call, graph->gone);
  return graph;
}
static int oracle_cuGraphDestroy(void *graph)
{
  ORACLE_RELEASE();
  oracle_graph_of(graph, ORACLE_NAME)->gone = "it was destroyed";
  return 0;
}
static int oracle_cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
  (void)nodes;
  ORACLE_CALL();
  *count = oracle_graph_of(graph, ORACLE_NAME)->count;
  return 0;
}
static int oracle_cuGraphInstantiate(void **executable, void *handle, unsigned long long flags)
{
  (void)flags;
  ORACLE_CALL();
  const oracle_graph *graph = oracle_graph_of(handle, ORACLE_NAME);
  oracle_graph *made = calloc(1, sizeof *made);
  if (!made) abort();
  *made = (oracle_graph){
    .next = oracle_graphs, .device = graph->device, .count = graph->count, .nodes = graph->nodes
  };
  oracle_graphs = made;
  *executable = made;
  return 0;
}
static int oracle_cuGraphExecUpdate(void *executable, void *handle, void **node, int *result)
{
  enum { UPDATE_FAILURE = 910 };
  (void)node;
  ORACLE_CALL();
  oracle_graph *to = oracle_graph_of(executable, ORACLE_NAME),
               *from = oracle_graph_of(handle, ORACLE_NAME);
  *result = to->count != from->count;
  for (uint32_t i = 0; i < to->count && !*result; i++)
    *result = to->nodes[i].call != from->nodes[i].call;
  if (*result) return UPDATE_FAILURE;
  to->nodes = from->nodes;
  return 0;
}
static int oracle_cuGraphExecDestroy(void *executable)
{
  ORACLE_RELEASE();
  oracle_graph_of(executable, ORACLE_NAME)->gone = "it was destroyed";
  return 0;
}
static int oracle_cuGraphLaunch(void *executable, void *handle)
{
  ORACLE_CALL();
  const oracle_graph *graph = oracle_graph_of(executable, ORACLE_NAME);
  oracle_stream *stream = oracle_stream_of(handle, ORACLE_NAME);
  ORACLE_TRY(oracle_look_at(stream, ORACLE_NAME));
  oracle_tick(stream);
  oracle_trace("      cuGraphLaunch is operation %u of %s\n", stream->clock.at[stream->index],
               oracle_stream_text(stream));
  for (uint32_t i = 0; i < graph->count; i++) {
    const oracle_operation *node = &graph->nodes[i];
    if (node->module && node->module->gone)
      oracle_violation("cuGraphLaunch of code that is gone: %s", node->module->gone);
    for (uint32_t k = 0; k < node->count; k++) {
      const oracle_block *block = node->accesses[k].block;
      if (block->gone || block->owner != node->accesses[k].owner)
        oracle_violation("cuGraphLaunch on %s uses %s as owner %u, which has ended: %s",
                         oracle_stream_text(stream), oracle_block_text(block),
                         node->accesses[k].owner, block->gone ? block->gone : "another one has it");
    }
    oracle_do(stream, node);
  }
  return 0;
}
static void oracle_drop_graphs_of(uint32_t device, const char *why)
{
  for (oracle_graph *graph = oracle_graphs; graph; graph = graph->next)
    if (graph->device == device && !graph->gone) graph->gone = why;
}

#endif

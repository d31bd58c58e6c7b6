/* Part of fake_cuda.h: memory, peers, other processes, streams, graphs, the profiler. Queued work
 * is done at once, except on a captured stream. */
#ifndef FAKE_CUDA_MEMORY_H
#define FAKE_CUDA_MEMORY_H

static int fake_cuDeviceGetUuid(void *uuid, int device)
{
  FAKE_CALL();
  memset(uuid, 7 + device, 16);
  return 0;
}
static int fake_cuDeviceCanAccessPeer(int *can_access, int device, int peer)
{
  FAKE_CALL();
  *can_access = device != peer && !cuda.refuse_peers;
  return 0;
}
static int fake_cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
  enum { ALREADY = 704 };
  (void)flags;
  FAKE_CALL();
  uint64_t bit = (uint64_t)1 << ((char *)peer - fake_primary);
  if (cuda.peers & bit) return ALREADY;
  cuda.peers |= bit;
  return 0;
}
static int fake_cuCtxDisablePeerAccess(void *peer)
{
  enum { NOT_ENABLED = 705 };
  FAKE_CALL();
  uint64_t bit = (uint64_t)1 << ((char *)peer - fake_primary);
  if (!(cuda.peers & bit)) return NOT_ENABLED;
  cuda.peers &= ~bit;
  return 0;
}
static int fake_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
  FAKE_CALL();
  *least = 0;
  *greatest = -5;
  return 0;
}

/* ---- memory ---- */

static int fake_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  FAKE_CALL();
  *total_bytes = 1 << 30;
  *free_bytes = (1 << 30) - cuda.memory_bytes;
  return 0;
}
static int fake_cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  cuda.allocations++;
  cuda.memory_bytes += size;
  *address = (uint64_t)(uintptr_t)fake_new(size);
  return 0;
}
static int fake_cuMemPrefetchAsync(uint64_t address, size_t size, int device, void *stream)
{
  (void)size, (void)device, (void)stream;
  FAKE_CALL();
  cuda.prefetched = (void *)(uintptr_t)address;
  return 0;
}
static int fake_cuMemHostRegister(void *memory, size_t size, unsigned flags)
{
  (void)memory, (void)size, (void)flags;
  FAKE_CALL();
  cuda.registered++;
  return 0;
}
static int fake_cuMemHostUnregister(void *memory)
{
  (void)memory;
  FAKE_CALL();
  cuda.registered--;
  return 0;
}
static int fake_cuMemGetAddressRange(uint64_t *base, size_t *size, uint64_t address)
{
  FAKE_CALL();
  for (const fake_block *block = fake_blocks; block; block = block->next) {
    uint64_t start = (uint64_t)(uintptr_t)block->data;
    if (address < start || address >= start + block->size) continue;
    *base = start;
    *size = block->size;
    return 0;
  }
  return CUDA_INVALID_VALUE;
}
static int fake_cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
  enum { DEVICE_ORDINAL = 9 };
  FAKE_CALL();
  if (attribute != DEVICE_ORDINAL) return CUDA_INVALID_VALUE;
  for (const fake_block *block = fake_blocks; block; block = block->next) {
    uint64_t start = (uint64_t)(uintptr_t)block->data;
    if (address < start || address >= start + block->size || !block->context) continue;
    *(int *)value = (int)((const char *)block->context - fake_primary);
    return 0;
  }
  return CUDA_INVALID_VALUE;
}

static void fake_set(uint64_t address, const void *value, size_t value_bytes, size_t count)
{
  for (size_t i = 0; i < count; i++)
    memcpy((char *)(uintptr_t)address + i * value_bytes, value, value_bytes);
}
#define FAKE_SET_WORDS(name, type) \
  static int fake_##name(uint64_t address, type value, size_t count, void *stream) \
  { \
    FAKE_CALL(); \
    if (address % sizeof value) return CUDA_INVALID_VALUE; \
    if (fake_is_captured(stream)) \
      return fake_capture(FAKE_SET, address, sizeof value, count, &value); \
    fake_set(address, &value, sizeof value, count); \
    return 0; \
  }
FAKE_SET_WORDS(cuMemsetD8Async, unsigned char)
FAKE_SET_WORDS(cuMemsetD16Async, unsigned short)
FAKE_SET_WORDS(cuMemsetD32Async, unsigned)
#undef FAKE_SET_WORDS

static const char *fake_side(const kj_cu_side *side)
{
  return side->type == KJ_CU_HOST ? side->host : (const char *)(uintptr_t)side->device;
}

static int fake_cuMemcpy2DAsync(const kj_cu_rows *rows, void *stream)
{
  (void)stream;
  FAKE_CALL();
  cuda.rows++;
  for (size_t i = 0; i < rows->height; i++)
    memcpy((char *)(uintptr_t)fake_side(&rows->destination) + i * rows->destination.pitch_bytes,
           fake_side(&rows->source) + i * rows->source.pitch_bytes, rows->width_bytes);
  return 0;
}

/* A handle contains the address, because there is only one process. */
static int fake_cuIpcGetMemHandle(kj_cu_ipc_handle *handle, uint64_t address)
{
  FAKE_CALL();
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &address, sizeof address);
  return 0;
}
static int fake_cuIpcOpenMemHandle(uint64_t *address, kj_cu_ipc_handle handle, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  cuda.opened++;
  memcpy(address, &handle, sizeof *address);
  return 0;
}
static int fake_cuIpcCloseMemHandle(uint64_t address)
{
  (void)address;
  FAKE_RELEASE();
  cuda.opened--;
  return 0;
}

/* ---- streams ---- */

static int fake_cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
  if (priority > 0 || priority < -5) return CUDA_INVALID_VALUE;
  return fake_cuStreamCreate(stream, flags);
}
static int fake_cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
  (void)flags;
  FAKE_CALL();
  void **recorded = event;
  for (int i = 0; i < 4 && recorded[1] && !fake_is_captured(stream); i++) {
    if (cuda.capturing[i]) continue;
    cuda.capturing[i] = stream;
    break;
  }
  cuda.ordered[cuda.orders % 8][0] = recorded[0];
  cuda.ordered[cuda.orders++ % 8][1] = stream;
  return 0;
}
static int fake_cuStreamQuery(void *stream)
{
  enum { NOT_READY = 600 };
  FAKE_CALL();
  if (fake_is_captured(stream)) return CUDA_CAPTURE_UNSUPPORTED;
  return cuda.is_busy ? NOT_READY : 0;
}
static int fake_cuEventQuery(void *event)
{
  enum { NOT_READY = 600 };
  (void)event;
  FAKE_CALL();
  return cuda.is_busy ? NOT_READY : 0;
}
static int fake_cuLaunchHostFunc(void *stream, void (*function)(void *user), void *user)
{
  void *pair[] = { (void *)(uintptr_t)function, user };
  FAKE_CALL();
  if (fake_is_captured(stream)) return fake_capture(FAKE_HOST, 0, 0, sizeof pair, pair);
  cuda.host_calls++;
  function(user);
  return 0;
}
static int fake_cuProfilerStart(void)
{
  FAKE_CALL();
  cuda.profiling++;
  return 0;
}
static int fake_cuProfilerStop(void)
{
  FAKE_CALL();
  cuda.profiling--;
  return 0;
}

/* ---- graphs ---- */

typedef struct fake_node {
  int kind;
  uint64_t to, from;
  size_t size;
  char data[512];
} fake_node;

typedef struct fake_graph {
  size_t count;
  fake_node nodes[16];
} fake_graph;

static int fake_capture(int kind, uint64_t to, uint64_t from, size_t size, const void *data)
{
  fake_graph *graph = cuda.captured;
  size_t data_bytes = kind == FAKE_SET ? (size_t)from : size;
  if (graph->count == 16 || (data && data_bytes > sizeof graph->nodes->data)) abort();
  fake_node *node = &graph->nodes[graph->count++];
  *node = (fake_node){ .kind = kind, .to = to, .from = from, .size = size };
  if (data) memcpy(node->data, data, data_bytes);
  return 0;
}
static int fake_cuStreamIsCapturing(void *stream, int *state)
{
  FAKE_CALL();
  *state = fake_is_captured(stream);
  return 0;
}
static int fake_cuStreamBeginCapture(void *stream, int mode)
{
  (void)mode;
  FAKE_CALL();
  if (!stream || cuda.capturing[0]) return CUDA_INVALID_VALUE;
  cuda.capturing[0] = stream;
  cuda.is_capture_broken = false;
  cuda.captured = fake_new(sizeof *cuda.captured);
  cuda.captured->count = 0;
  return 0;
}
/* The capture ends even if the call returns an error. */
static int fake_cuStreamEndCapture(void *stream, void **graph)
{
  bool is_captured = cuda.capturing[0] == stream;
  memset(cuda.capturing, 0, sizeof cuda.capturing);
  if (!is_captured) return CUDA_INVALID_VALUE;
  int result = cuda.is_capture_broken ? CUDA_CAPTURE_INVALIDATED : fake_call("cuStreamEndCapture");
  if (result) {
    fake_delete(cuda.captured);
    return result;
  }
  cuda.graphs++;
  *graph = cuda.captured;
  return 0;
}
static int fake_cuGraphDestroy(void *graph)
{
  FAKE_RELEASE();
  cuda.graphs--;
  fake_delete(graph);
  return 0;
}
static int fake_cuGraphGetNodes(void *graph, void **nodes, size_t *count)
{
  (void)nodes;
  FAKE_CALL();
  *count = ((fake_graph *)graph)->count;
  return 0;
}
static int fake_cuGraphInstantiate(void **executable, void *graph, unsigned long long flags)
{
  (void)flags;
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  cuda.executables++;
  *executable = fake_new(sizeof(fake_graph));
  memcpy(*executable, graph, sizeof(fake_graph));
  return 0;
}
static int fake_cuGraphExecUpdate(void *executable, void *graph, void **node, int *result)
{
  enum { UPDATE_FAILURE = 910 };
  (void)node;
  FAKE_CALL();
  fake_graph *to = executable, *from = graph;
  bool is_equal = to->count == from->count;
  for (size_t i = 0; i < to->count && is_equal; i++)
    is_equal = to->nodes[i].kind == from->nodes[i].kind;
  *result = !is_equal;
  if (!is_equal) return UPDATE_FAILURE;
  memcpy(to, from, sizeof *to);
  return 0;
}
static int fake_cuGraphExecDestroy(void *executable)
{
  FAKE_RELEASE();
  cuda.executables--;
  fake_delete(executable);
  return 0;
}
static void fake_run_node(const fake_node *node)
{
  void *pair[2];
  switch (node->kind) {
  case FAKE_LAUNCH:
    cuda.launches++;
    if (cuda.kernel) cuda.kernel(node->data);
    break;
  case FAKE_COPY:
    memmove((void *)(uintptr_t)node->to, (const void *)(uintptr_t)node->from, node->size);
    break;
  case FAKE_SET: fake_set(node->to, node->data, node->from, node->size); break;
  default: memcpy(pair, node->data, sizeof pair); (*(void (**)(void *)) & pair[0])(pair[1]);
  }
}
static int fake_cuGraphLaunch(void *executable, void *stream)
{
  (void)stream;
  FAKE_CALL();
  FAKE_NEEDS_MEMORY();
  const fake_graph *graph = executable;
  for (size_t i = 0; i < graph->count; i++) fake_run_node(&graph->nodes[i]);
  if (cuda.fault_next_launch) cuda.fault = CUDA_ILLEGAL_ADDRESS;
  cuda.fault_next_launch = false;
  return 0;
}

#endif

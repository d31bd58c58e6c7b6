/* Part of oracle_driver.h: memory, copies, code, properties of devices, the table of entry
 * points. */
#ifndef ORACLE_DEVICE_H
#define ORACLE_DEVICE_H

/* ---- memory ---- */

static int oracle_allocate(size_t size, oracle_kind kind, void **memory)
{
  uint32_t device = oracle_current();
  bool counts = kind == ORACLE_DEVICE || kind == ORACLE_MANAGED;
  if (counts && oracle.memory_limit && oracle.memory_bytes[device] + size > oracle.memory_limit)
    return CUDA_OUT_OF_MEMORY;
  if (counts) oracle.memory_bytes[device] += size;
  *memory = aligned_alloc(256, (size + 255) / 256 * 256);
  if (!*memory) abort();
  oracle_block *block = oracle_add_block(*memory, size, kind, device);
  oracle_trace("      %s of cuda:%u: %zu bytes\n", oracle_block_text(block), device, size);
  return 0;
}
static int oracle_cuMemAlloc(uint64_t *address, size_t size)
{
  ORACLE_CALL();
  return oracle_allocate(size, ORACLE_DEVICE, (void **)address);
}
static int oracle_cuMemAllocManaged(uint64_t *address, size_t size, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  return oracle_allocate(size, ORACLE_MANAGED, (void **)address);
}
static int oracle_cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  return oracle_allocate(size, ORACLE_PINNED, memory);
}
/* Memory is kept until the process ends, so that no address is used twice. */
static int oracle_free(void *memory, const char *call)
{
  oracle_block *block = oracle_find_block(memory);
  if (!block || block->address != memory)
    oracle_violation("%s of memory that the driver has not given, or has back", call);
  oracle_trace("      %s of %s\n", call, oracle_block_text(block));
  if (block->kind == ORACLE_DEVICE || block->kind == ORACLE_MANAGED)
    oracle.memory_bytes[block->device] -= block->size;
  oracle_end_block(block, call, true);
  return 0;
}
static int oracle_cuMemFree(uint64_t address)
{
  ORACLE_RELEASE();
  return oracle_free((void *)(uintptr_t)address, ORACLE_NAME);
}
static int oracle_cuMemFreeHost(void *memory)
{
  ORACLE_RELEASE();
  return oracle_free(memory, ORACLE_NAME);
}
static int oracle_cuMemHostGetDevicePointer(uint64_t *address, void *memory, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  *address = (uint64_t)(uintptr_t)memory;
  return 0;
}
static int oracle_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
  ORACLE_CALL();
  *total_bytes = *free_bytes = 1 << 30;
  return 0;
}
static int oracle_cuMemGetAddressRange(uint64_t *base, size_t *size, uint64_t address)
{
  ORACLE_CALL();
  const oracle_block *block = oracle_find_block((void *)(uintptr_t)address);
  if (!block) return CUDA_INVALID_VALUE;
  if (base) *base = (uint64_t)(uintptr_t)block->address;
  if (size) *size = block->size;
  return 0;
}
static int oracle_cuMemHostRegister(void *memory, size_t size, unsigned flags)
{
  (void)memory, (void)size, (void)flags;
  ORACLE_CALL();
  return 0;
}
static int oracle_cuMemHostUnregister(void *memory)
{
  (void)memory;
  ORACLE_CALL();
  return 0;
}
/* A handle contains the address. The importer maps the memory at another address. */
static int oracle_cuIpcGetMemHandle(kj_cu_ipc_handle *handle, uint64_t address)
{
  ORACLE_CALL();
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &address, sizeof address);
  return 0;
}
static int oracle_cuIpcOpenMemHandle(uint64_t *address, kj_cu_ipc_handle handle, unsigned flags)
{
  (void)flags;
  void *memory;
  ORACLE_CALL();
  memcpy(&memory, &handle, sizeof memory);
  const oracle_block *block = oracle_find_block(memory);
  return block ? oracle_allocate(block->size, ORACLE_OPENED, (void **)address) : CUDA_INVALID_VALUE;
}
static int oracle_cuIpcCloseMemHandle(uint64_t address)
{
  ORACLE_RELEASE();
  oracle_block *block = oracle_find_block((void *)(uintptr_t)address);
  if (!block || block->kind != ORACLE_OPENED)
    oracle_violation("%s of memory that is not open", ORACLE_NAME);
  oracle_end_block(block, ORACLE_NAME, false);
  return 0;
}

/* ---- copies ---- */

/* Host memory that is not pinned has been read or written when the call returns. */
static int oracle_copy(void *handle, const void *to, const void *from, const char *call)
{
  oracle_stream *stream = oracle_stream_of(handle, call);
  oracle_operation operation = { .call = call };
  const oracle_block *blocks[] = { oracle_find_block(to), oracle_find_block(from) };
  bool is_host[2] = { false };
  for (int i = 0; i < 2; i++) is_host[i] = !blocks[i] || blocks[i]->kind == ORACLE_HOST;
  if (!is_host[0] || stream->capture) oracle_add_access(&operation, to);
  if (!is_host[1] || stream->capture) oracle_add_access(&operation, from);
  ORACLE_TRY(oracle_queue(stream, &operation));
  if (is_host[0] && !stream->capture) oracle_wait(oracle_next(stream));
  return 0;
}
static int oracle_cuMemcpyHtoDAsync(uint64_t to, const void *from, size_t size, void *stream)
{
  (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, (void *)(uintptr_t)to, from, ORACLE_NAME);
}
static int oracle_cuMemcpyDtoHAsync(void *to, uint64_t from, size_t size, void *stream)
{
  (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, to, (void *)(uintptr_t)from, ORACLE_NAME);
}
static int oracle_cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t size, void *stream)
{
  (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, (void *)(uintptr_t)to, (void *)(uintptr_t)from, ORACLE_NAME);
}
static int oracle_cuMemcpyPeerAsync(uint64_t to, void *to_context, uint64_t from,
                                    void *from_context, size_t size, void *stream)
{
  (void)to_context, (void)from_context, (void)size;
  ORACLE_CALL();
  return oracle_copy(stream, (void *)(uintptr_t)to, (void *)(uintptr_t)from, ORACLE_NAME);
}
static int oracle_cuMemcpy2DAsync(const kj_cu_rows *rows, void *stream)
{
  ORACLE_CALL();
  return oracle_copy(stream, fake_side(&rows->destination), fake_side(&rows->source), ORACLE_NAME);
}
static int oracle_set(void *handle, uint64_t address, const char *call)
{
  oracle_operation operation = { .call = call };
  oracle_add_access(&operation, (void *)(uintptr_t)address);
  return oracle_queue(oracle_stream_of(handle, call), &operation);
}
#define ORACLE_SET(name, type) \
  static int oracle_##name(uint64_t address, type value, size_t count, void *stream) \
  { \
    (void)value, (void)count; \
    ORACLE_CALL(); \
    return oracle_set(stream, address, ORACLE_NAME); \
  }
ORACLE_SET(cuMemsetD8Async, unsigned char)
ORACLE_SET(cuMemsetD16Async, unsigned short)
ORACLE_SET(cuMemsetD32Async, unsigned)
#undef ORACLE_SET
static int oracle_cuMemPrefetchAsync(uint64_t address, size_t size, int device, void *stream)
{
  (void)size, (void)device;
  ORACLE_CALL();
  return oracle_set(stream, address, ORACLE_NAME);
}

/* ---- code ---- */

static int oracle_cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                                     void **values)
{
  (void)image, (void)count, (void)options, (void)values;
  ORACLE_CALL();
  oracle_module *made = calloc(1, sizeof *made);
  if (!made) abort();
  made->device = oracle_current();
  made->uses = (oracle_block){ .size = 1, .kind = ORACLE_DEVICE, .device = made->device };
  made->next = oracle_modules;
  oracle_modules = made;
  *module = made;
  return 0;
}
static int oracle_cuModuleUnload(void *handle)
{
  ORACLE_RELEASE();
  oracle_module *module = handle;
  if (module->gone) oracle_violation("a module is unloaded twice");
  for (uint32_t i = 0; i < module->uses.use_count; i++) {
    const oracle_use *use = &module->uses.uses[i];
    if (!oracle_is_before(use, &oracle.host))
      oracle_violation("cuModuleUnload of code that is queued: %s, operation %u of %s", use->call,
                       use->tick, oracle_stream_text(oracle.streams[use->stream]));
  }
  module->gone = "it was unloaded";
  return 0;
}
static int oracle_cuModuleGetFunction(void **function, void *module, const char *name)
{
  (void)name;
  ORACLE_CALL();
  *function = module;
  return 0;
}
static int oracle_cuModuleGetGlobal(uint64_t *address, size_t *size_bytes, void *module,
                                    const char *name)
{
  (void)module, (void)name;
  ORACLE_CALL();
  *address = (uint64_t)(uintptr_t)cuda.global;
  *size_bytes = sizeof cuda.global;
  return CUDA_OK;
}

/* Every word of the parameters that is an address in the driver's memory counts as an array. */
static int oracle_launch(oracle_module *module, void *handle, void **extra)
{
  oracle_stream *stream = oracle_stream_of(handle, "cuLaunchKernel");
  oracle_operation operation = { .call = "cuLaunchKernel", .module = module };
  if (module->gone) oracle_violation("cuLaunchKernel of code that is gone: %s", module->gone);
  if ((uintptr_t)handle <= 2 && module->device != oracle_current()) {
    /* driver 580 checks the stream in the current context before it checks the context of the
     * function */
    if (oracle_here.context) ORACLE_TRY(oracle_look_at(stream, "cuLaunchKernel"));
    return oracle_here.context ? CUDA_INVALID_HANDLE : CUDA_INVALID_CONTEXT;
  }
  if (stream->device != module->device) return CUDA_INVALID_HANDLE;
  for (size_t at = 0; extra && at + sizeof(uint64_t) <= *(size_t *)extra[3]; at += 8) {
    void *word;
    memcpy(&word, (char *)extra[1] + at, sizeof word);
    oracle_add_access(&operation, word);
  }
  return oracle_queue(stream, &operation);
}
static int oracle_cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, void *stream,
                                 void **parameters, void **extra)
{
  (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)parameters;
  ORACLE_CALL();
  return oracle_launch(function, stream, extra);
}
static int oracle_cuLaunchKernelEx(const kj_cu_launch_config *config, void *function,
                                   void **parameters, void **extra)
{
  (void)parameters;
  ORACLE_CALL();
  return oracle_launch(function, config->stream, extra);
}

/* ---- devices ---- */

static uint8_t oracle_peers[ORACLE_DEVICES][ORACLE_DEVICES];

static int oracle_cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
  (void)flags;
  ORACLE_CALL();
  uint8_t *has = &oracle_peers[oracle_current()][(char *)peer - fake_primary];
  if (*has) return CUDA_PEER_ALREADY;
  *has = 1;
  return 0;
}
static int oracle_cuCtxDisablePeerAccess(void *peer)
{
  ORACLE_CALL();
  uint8_t *has = &oracle_peers[oracle_current()][(char *)peer - fake_primary];
  if (!*has) return CUDA_PEER_NOT_ENABLED;
  *has = 0;
  return 0;
}

/* All objects of the context are lost, including queued work. */
static int oracle_cuDevicePrimaryCtxReset(int handle)
{
  static const char why[] = "its device was reset";
  uint32_t device = (uint32_t)handle;
  oracle_scope scope __attribute__((cleanup(oracle_leave))) = oracle_enter(ORACLE_NAME, true);
  if (scope.result) { /* no more work runs on the device in this case either */
    oracle_begin_fault(device);
    return scope.result;
  }
  oracle.is_faulty[device] = false;
  oracle_trace("      cuDevicePrimaryCtxReset of cuda:%u\n", device);
  oracle_drop_captures_of(device);
  for (uint32_t i = 0; i < oracle.stream_count; i++) {
    oracle_stream *stream = oracle.streams[i];
    if (stream->device != device) continue;
    oracle_join(&oracle.host, &stream->clock);
    if (!stream->is_legacy && !stream->gone) stream->gone = why;
  }
  oracle_run_functions(&oracle.host);
  for (uint32_t i = 0; i < oracle.block_count; i++) {
    oracle_block *block = &oracle.blocks[i];
    if (block->gone || block->kind == ORACLE_HOST || block->device != device) continue;
    block->gone = why; /* the program must not use the memory any more */
    block->use_count = 0;
    block->is_alive = false;
  }
  for (uint32_t i = 0; i < oracle_events.count; i++)
    if (oracle_events.items[i]->device == device && !oracle_events.items[i]->gone)
      oracle_events.items[i]->gone = why;
  for (oracle_module *module = oracle_modules; module; module = module->next)
    if (module->device == device && !module->gone) module->gone = why;
  oracle_drop_graphs_of(device, why);
  memset(oracle_peers[device], 0, sizeof oracle_peers[device]);
  oracle.memory_bytes[device] = 0;
  return 0;
}

/* ---- the table ---- */

static void *find_oracle(void *user, const char *symbol)
{
  static const struct {
    const char *symbol;
    void *address;
  } rows[] = {
#define ROW(name, symbol) { symbol, (void *)(uintptr_t)oracle_##name }
    ROW(cuCtxGetCurrent, "cuCtxGetCurrent"),
    ROW(cuCtxSetCurrent, "cuCtxSetCurrent"),
    ROW(cuCtxSynchronize, "cuCtxSynchronize"),
    ROW(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess"),
    ROW(cuCtxDisablePeerAccess, "cuCtxDisablePeerAccess"),
    ROW(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset_v2"),
    ROW(cuStreamCreate, "cuStreamCreate"),
    ROW(cuStreamCreateWithPriority, "cuStreamCreateWithPriority"),
    ROW(cuStreamDestroy, "cuStreamDestroy_v2"),
    ROW(cuStreamSynchronize, "cuStreamSynchronize"),
    ROW(cuStreamQuery, "cuStreamQuery"),
    ROW(cuStreamWaitEvent, "cuStreamWaitEvent"),
    ROW(cuStreamIsCapturing, "cuStreamIsCapturing"),
    ROW(cuStreamBeginCapture, "cuStreamBeginCapture_v2"),
    ROW(cuStreamEndCapture, "cuStreamEndCapture"),
    ROW(cuLaunchHostFunc, "cuLaunchHostFunc"),
    ROW(cuEventCreate, "cuEventCreate"),
    ROW(cuEventDestroy, "cuEventDestroy_v2"),
    ROW(cuEventRecord, "cuEventRecord"),
    ROW(cuEventSynchronize, "cuEventSynchronize"),
    ROW(cuEventQuery, "cuEventQuery"),
    ROW(cuEventElapsedTime, "cuEventElapsedTime"),
    ROW(cuMemAlloc, "cuMemAlloc_v2"),
    ROW(cuMemAllocManaged, "cuMemAllocManaged"),
    ROW(cuMemFree, "cuMemFree_v2"),
    ROW(cuMemHostAlloc, "cuMemHostAlloc"),
    ROW(cuMemFreeHost, "cuMemFreeHost"),
    ROW(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2"),
    ROW(cuMemGetInfo, "cuMemGetInfo_v2"),
    ROW(cuMemGetAddressRange, "cuMemGetAddressRange_v2"),
    ROW(cuMemHostRegister, "cuMemHostRegister_v2"),
    ROW(cuMemHostUnregister, "cuMemHostUnregister"),
    ROW(cuMemPrefetchAsync, "cuMemPrefetchAsync"),
    ROW(cuIpcGetMemHandle, "cuIpcGetMemHandle"),
    ROW(cuIpcOpenMemHandle, "cuIpcOpenMemHandle_v2"),
    ROW(cuIpcCloseMemHandle, "cuIpcCloseMemHandle"),
    ROW(cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2"),
    ROW(cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2"),
    ROW(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2"),
    ROW(cuMemcpyPeerAsync, "cuMemcpyPeerAsync"),
    ROW(cuMemcpy2DAsync, "cuMemcpy2DAsync_v2"),
    ROW(cuMemsetD8Async, "cuMemsetD8Async"),
    ROW(cuMemsetD16Async, "cuMemsetD16Async"),
    ROW(cuMemsetD32Async, "cuMemsetD32Async"),
    ROW(cuModuleLoadDataEx, "cuModuleLoadDataEx"),
    ROW(cuModuleUnload, "cuModuleUnload"),
    ROW(cuModuleGetFunction, "cuModuleGetFunction"),
    ROW(cuModuleGetGlobal, "cuModuleGetGlobal_v2"),
    ROW(cuLaunchKernel, "cuLaunchKernel"),
    ROW(cuLaunchKernelEx, "cuLaunchKernelEx"),
    ROW(cuGraphDestroy, "cuGraphDestroy"),
    ROW(cuGraphGetNodes, "cuGraphGetNodes"),
    ROW(cuGraphInstantiate, "cuGraphInstantiateWithFlags"),
    ROW(cuGraphExecUpdate, "cuGraphExecUpdate"),
    ROW(cuGraphLaunch, "cuGraphLaunch"),
    ROW(cuGraphExecDestroy, "cuGraphExecDestroy")
#undef ROW
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!strcmp(rows[i].symbol, symbol)) return rows[i].address;
  return find_fake(user, symbol);
}

#endif

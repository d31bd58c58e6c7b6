/* The table of the runtime's layers, from the lowest to the highest. A layer does not depend on the
 * layers above it. Each row lists the functions by which a layer attaches its state to a context or
 * a device. Attachments end in reverse order. */
#include "algorithm/algorithm.h"
#include "base/interrupt.h"
#include "base/runtime.h"
#include "code/specialization.h"
#include "cpu/cpu.h"
#include "cuda/cuda.h"
#include "launch/steps.h"
#include "memory/pool.h"
#include "report/report.h"
#include "stream/stream.h"

const kj_device_operations *const kj_device_kinds[] = { &kj_cuda_operations, &kj_cpu_operations,
                                                        NULL };

kj_kind_choice *const kj_choose_kind = kj_target_operations;

const kj_layer kj_layers[] = {
  { .open_device = kj_open_interrupts },
  { .open_runtime = kj_open_order, .open_device = kj_open_memory },
  { .open_runtime = kj_open_captures },
  { .open_device = kj_open_reports },
  { .open_runtime = kj_open_code, .open_device = kj_open_unloading },
  { .open_runtime = kj_open_launches },
  { .open_runtime = ka_open_cache },
  { NULL, NULL },
};

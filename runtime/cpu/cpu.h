/* The CPU as a device. */
#ifndef KJ_CPU_CPU_H
#define KJ_CPU_CPU_H

#include "base/device.h"

/* What each function does stands in base/device.h; here they are for a device that runs kernels on
 * the host's cores, too. */
extern const kj_device_operations kj_cpu_operations;

#endif

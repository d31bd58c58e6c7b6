/* A run's device, and the copies of arrays on this device. */
#ifndef RUN_DEVICE_H
#define RUN_DEVICE_H

#include "step.h"

kjit_device_kind run_get_device_kind(const kjit_device *device);
/* Opens the device. text is "cpu", "cuda", "cuda:1" or "auto". */
bool run_open_device(tool_error *error, kjit_context *context, const char *text,
                     kjit_device **device);
/* Prints a line for each device, such as "cuda:0 sm_90 NVIDIA H200, 132 multiprocessors, 139.8
 * GiB". */
void run_list_devices(kjit_context *context);
/* returns for example "cuda:0"; the caller frees it */
char *run_device_name(const kjit_device *device);
/* returns for example "cuda:0 NVIDIA H200 (sm_90)"; the caller frees it */
char *run_device_text(const kjit_device *device);

/* Copies the allocations of all operands to a GPU, each allocation once. Does nothing on the
 * CPU. */
bool run_upload(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps);
/* Copies an allocation back from a GPU. */
bool run_download(tool_error *error, kjit_context *context, const tool_arguments *arguments);

#endif

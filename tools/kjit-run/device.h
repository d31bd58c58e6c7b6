/* The device of a run, and the arrays on it. */
#ifndef RUN_DEVICE_H
#define RUN_DEVICE_H

#include "step.h"

/* text: "cpu", "cuda", "cuda:1", "auto". */
kjit_device_kind run_get_device_kind(const kjit_device *device);
bool run_open_device(tool_error *error, kjit_context *context, const char *text,
                     kjit_device **device);
/* A line for each device: "cuda:0  sm_90  NVIDIA H200, 132 multiprocessors, 139.8 GiB". */
void run_list_devices(kjit_context *context);
char *run_device_name(const kjit_device *device); /* "cuda:0" */
char *run_device_text(const kjit_device *device); /* "cuda:0 NVIDIA H200 (sm_90)" */

/* Copies the memory of all operands to a GPU, once each; nothing to do on the CPU. */
bool run_upload(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps);
/* Brings the bytes of a GPU back. */
bool run_download(tool_error *error, kjit_context *context, const tool_arguments *arguments);

#endif

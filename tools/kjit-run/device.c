#include "device.h"

#include <driver/progress.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *kind_text(kjit_device_kind kind)
{
  return kind == KJIT_DEVICE_CUDA ? "cuda" : "cpu";
}

char *run_device_name(const kjit_device *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  return tool_format("%s:%d", kind_text(info.kind), info.ordinal);
}

char *run_device_text(const kjit_device *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  return tool_format("%s:%d %s (%s)", kind_text(info.kind), info.ordinal,
                     info.name ? info.name : "unknown", info.target ? info.target : "unknown");
}

kjit_device_kind run_get_device_kind(const kjit_device *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  return info.kind;
}

static bool parse_device(kjit_context *context, const char *text, kjit_device_kind *kind,
                         int32_t *ordinal)
{
  *ordinal = 0;
  *kind = KJIT_DEVICE_CPU;
  if (!strcmp(text, "cpu")) return true;
  bool is_auto = !strcmp(text, "auto");
  if (is_auto && !kjit_get_device_count(context, KJIT_DEVICE_CUDA)) return true;
  *kind = KJIT_DEVICE_CUDA;
  if (is_auto || !strcmp(text, "cuda")) return true;
  char *end;
  if (strncmp(text, "cuda:", 5)) return false;
  long number = strtol(text + 5, &end, 10);
  *ordinal = (int32_t)number;
  return text[5] >= '0' && text[5] <= '9' && !*end && number < 1024;
}

bool run_open_device(tool_error *error, kjit_context *context, const char *text,
                     kjit_device **device)
{
  kjit_device_kind kind;
  int32_t ordinal;
  if (!parse_device(context, text, &kind, &ordinal))
    return tool_fail(error, TOOL_EXIT_USAGE,
                     "--device: expected cpu, cuda, cuda:N or auto, not '%s'", text);
  kjit_status status = kjit_get_device(context, kind, ordinal, device);
  if (status == KJIT_OK) return true;
  tool_fail_kjit(error, context, status, "opening the device");
  return tool_prefix(error, "--device %s", text);
}

static void list_device(const kjit_device *device)
{
  kjit_device_info info = { .size_bytes = sizeof info };
  kjit_get_device_info(device, &info);
  double gib = (double)info.memory_bytes / (1 << 30);
  const char *parts = info.kind == KJIT_DEVICE_CUDA ? "multiprocessors" : "cores";
  printf("%s:%d  %s  %s, %u %s, %.1f GiB", kind_text(info.kind), info.ordinal,
         info.target ? info.target : "?", info.name ? info.name : "?", info.multiprocessor_count,
         parts, gib);
  if (info.driver_version)
    printf(", driver for CUDA %d.%d", info.driver_version / 1000, info.driver_version % 1000 / 10);
  putchar('\n');
}

void run_list_devices(kjit_context *context)
{
  static const kjit_device_kind kinds[] = { KJIT_DEVICE_CUDA, KJIT_DEVICE_CPU };
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    uint32_t count = kjit_get_device_count(context, kinds[k]);
    for (uint32_t i = 0; i < count; i++) {
      kjit_device *device;
      tool_error error = { 0 };
      kjit_status status = kjit_get_device(context, kinds[k], (int32_t)i, &device);
      if (status == KJIT_OK) {
        list_device(device);
        continue;
      }
      tool_fail_kjit(&error, context, status, "opening a device");
      tool_report(&error);
    }
  }
}

/* ---- memory ---- */

/* Returns the allocation as a flat array. The bytes on the device have the same order as on the
 * host, whatever the arrays' layouts in the allocation. */
static kjit_tensor flat_tensor(const tool_memory *memory, int64_t *count)
{
  const tool_element *element = &tool_elements[memory->element];
  *count = (int64_t)(memory->size_bytes / element->size_bytes);
  return (kjit_tensor){ .data = memory->data,
                        .device_type = KJIT_DEVICE_CPU,
                        .rank = 1,
                        .code = element->code,
                        .bits = element->bits,
                        .lanes = 1,
                        .shape = count };
}

static kjit_tensor flat_validity(const tool_memory *memory, int64_t *count)
{
  *count = (int64_t)tool_validity_bytes(memory);
  return (kjit_tensor){ .data = memory->validity,
                        .device_type = KJIT_DEVICE_CPU,
                        .rank = 1,
                        .code = tool_elements[KJIT_U8].code,
                        .bits = tool_elements[KJIT_U8].bits,
                        .lanes = 1,
                        .shape = count };
}

static bool upload_validity(tool_error *error, kjit_context *context, kjit_device *device,
                            tool_memory *memory)
{
  int64_t count;
  kjit_tensor host = flat_validity(memory, &count);
  kjit_status status = kjit_create_array(device, KJIT_U8, &count, 1, &memory->device_validity);
  if (status == KJIT_OK && count) {
    kjit_arg to = kjit_arg_array(memory->device_validity), from = kjit_arg_tensor(&host);
    status = kjit_copy(context, &to, &from, NULL);
  }
  return status == KJIT_OK ||
         tool_fail_kjit(error, context, status, "copying a bitmap to the device");
}

static bool upload(tool_error *error, kjit_context *context, kjit_device *device,
                   tool_memory *memory)
{
  int64_t count;
  kjit_tensor host = flat_tensor(memory, &count);
  if (memory->device) return true;
  if (memory->validity && !upload_validity(error, context, device, memory)) return false;
  kjit_status status = kjit_create_array(device, memory->element, &count, 1, &memory->device);
  if (status != KJIT_OK)
    return tool_fail_kjit(error, context, status, "allocating an array on the device");
  kjit_arg to = kjit_arg_array(memory->device), from = kjit_arg_tensor(&host);
  status = count ? kjit_copy(context, &to, &from, NULL) : KJIT_OK;
  return status == KJIT_OK ||
         tool_fail_kjit(error, context, status, "copying an array to the device");
}

bool run_upload(tool_error *error, kjit_context *context, kjit_device *device, run_steps *steps)
{
  if (run_get_device_kind(device) == KJIT_DEVICE_CPU) return true;
  tool_progress("copying arrays to the device", 0);
  for (size_t i = 0; i < steps->count; i++) {
    for (size_t k = 0; k < steps->items[i].count; k++) {
      run_operand *operand = &steps->items[i].operands[k];
      if (!operand->function && operand->argument.is_array &&
          !upload(error, context, device, operand->argument.array.memory))
        return false;
    }
  }
  return true;
}

static bool download_validity(tool_error *error, kjit_context *context, const tool_memory *memory)
{
  int64_t count;
  kjit_tensor host = flat_validity(memory, &count);
  kjit_arg to = kjit_arg_tensor(&host), from = kjit_arg_array(memory->device_validity);
  kjit_status status = kjit_copy(context, &to, &from, NULL);
  return status == KJIT_OK ||
         tool_fail_kjit(error, context, status, "copying a bitmap from the device");
}

bool run_download(tool_error *error, kjit_context *context, const tool_arguments *arguments)
{
  for (size_t i = 0; i < arguments->memory_count; i++) {
    tool_memory *memory = arguments->memories[i];
    int64_t count;
    kjit_tensor host = flat_tensor(memory, &count);
    if (!memory->device || !count) continue;
    if (memory->device_validity && !download_validity(error, context, memory)) return false;
    tool_progress("copying arrays from the device", 0);
    kjit_arg to = kjit_arg_tensor(&host), from = kjit_arg_array(memory->device);
    kjit_status status = kjit_copy(context, &to, &from, NULL);
    if (status != KJIT_OK)
      return tool_fail_kjit(error, context, status, "copying an array from the device");
  }
  return true;
}

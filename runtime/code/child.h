/* Compiling in child processes: LLVM and the driver's assembler run where a crash or an endless
 * loop of theirs is an error of one compilation and nothing else (kjit_config.compile_in_child).
 *
 * To the rest of the runtime it is another compiler behind kj_compiler_interface. A child is the
 * program kjit-compile-child, with a context of its own; it stays, and serves one compilation at a
 * time. */
#ifndef KJ_CODE_CHILD_H
#define KJ_CODE_CHILD_H

#include <kjit/compile.h>

#include "base/runtime.h"

/* ---- child.c: the host's side ---- */

/* In place of opening libkjit-compiler: sets interface and compiler. Starts no process. Under the
 * compiler's lock. Errors: NO_COMPILER where the program is not there, MEMORY. */
kjit_status kj_open_children(kj_runtime *runtime, kj_diagnostics *diagnostics);

/* PTX to machine code by the driver's assembler: in a child where the context compiles there, else
 * by the device's own link. */
kjit_status kj_link(kjit_device *device, const kj_link_input *inputs, size_t count,
                    kj_diagnostics *diagnostics, void **binary, size_t *binary_bytes);

/* ---- child_messages.c: what the two say to each other ---- */

/* Before each message. Processes of different builds refuse each other by it: the messages are
 * structs as these have them in memory. A child answers a request twice: by a frame of size 0 when
 * it has read it, and by what became of it. */
typedef struct kj_frame {
  char build[64]; /* kj_build, and zeros */
  uint64_t size_bytes;
} kj_frame;
enum { KJ_MOST_MESSAGE_MIB = 1024 };
kj_frame kj_make_frame(size_t size_bytes);
bool kj_is_own_frame(const kj_frame *frame);

/* The first message: what the child's context is made with, of the host's. It has no answer. */
typedef struct kj_child_start {
  const char *compiler_path, *libdevice_path;
  uint32_t debug; /* kjit_debug */
} kj_child_start;

typedef struct kj_child_request {
  const kj_compile_request *compile; /* NULL: what follows is linked */
  int32_t ordinal;                   /* of the CUDA device */
  const kj_link_input *inputs;
  uint64_t input_count;
} kj_child_request;

typedef struct kj_child_answer {
  uint32_t status;
  kjit_diagnostic *diagnostics;
  uint64_t diagnostic_count;
  kj_code code; /* of linking: data and size_bytes only */
} kj_child_answer;

/* false: out of memory. */
bool kj_pack_start(const kj_child_start *start, kj_buffer *bytes);
bool kj_pack_request(const ki_types *types, const kj_child_request *request, kj_buffer *bytes);
bool kj_pack_answer(const ki_types *types, const kj_child_answer *answer, kj_buffer *bytes);
/* In the arena; NULL: the bytes are none. Modules have the context and its types. Out of memory
 * jumps. */
kj_child_start *kj_unpack_start(const void *bytes, size_t size_bytes, kj_arena *arena);
kj_child_request *kj_unpack_request(kjit_context *context, const void *bytes, size_t size_bytes,
                                    kj_arena *arena);
/* Takes nothing for granted: what is not what a compiler may say gives false. Messages go to
 * diagnostics; code, with memory of its own, is filled in where *status is OK. Out of memory is
 * *status. */
bool kj_take_answer(ki_types *types, const void *bytes, size_t size_bytes,
                    kj_diagnostics *diagnostics, kj_code *code, kjit_status *status);

#endif

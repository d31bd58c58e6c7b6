/* Compilation in child processes (kjit_config.compile_in_child). LLVM and the driver's assembler
 * run in a child. If they crash or do not end, only this compilation fails.
 *
 * For the rest of the runtime, child processes are a compiler with the interface
 * kj_compiler_interface. A child runs the program kjit-compile-child, which has its own context. It
 * serves one compilation at a time and continues to run afterwards. */
#ifndef KJ_CODE_CHILD_H
#define KJ_CODE_CHILD_H

#include <kjit/compile.h>

#include "base/runtime.h"

/* ---- child.c: the side of the application's process ---- */

/* Sets interface and compiler without opening libkjit-compiler. Starts no process. The caller holds
 * the compiler's lock. Errors: NO_COMPILER if the program is missing, MEMORY. */
kjit_status kj_open_children(kj_runtime *runtime, kj_diagnostics *diagnostics);

/* Links PTX to machine code with the driver's assembler: in a child if the context compiles in
 * children, otherwise in this process. */
kjit_status kj_link(kjit_device *device, const kj_link_input *inputs, size_t count,
                    kj_diagnostics *diagnostics, void **binary, size_t *binary_bytes);

/* ---- child_messages.c: the messages between the two processes ---- */

/* The frame that precedes each message. A process rejects messages of another build, because the
 * messages contain structs as they are in memory. A child answers a request twice: first with a
 * frame of size 0, when it has read the request, and then with the result. */
typedef struct kj_frame {
  char build[64]; /* kj_build, padded with zeros */
  uint64_t size_bytes;
} kj_frame;
enum { KJ_MOST_MESSAGE_MIB = 1024 };
kj_frame kj_make_frame(size_t size_bytes);
bool kj_is_own_frame(const kj_frame *frame);

/* The first message to a child, with settings of the application's context for the child's context.
 * The child does not answer it. */
typedef struct kj_child_start {
  const char *compiler_path, *libdevice_path;
  uint32_t debug; /* kjit_debug */
} kj_child_start;

typedef struct kj_child_request {
  /* the compilation; NULL if the request links the following inputs instead */
  const kj_compile_request *compile;
  int32_t ordinal; /* number of the CUDA device */
  const kj_link_input *inputs;
  uint64_t input_count;
} kj_child_request;

typedef struct kj_child_answer {
  uint32_t status;
  kjit_diagnostic *diagnostics;
  uint64_t diagnostic_count;
  kj_code code; /* after linking, only data and size_bytes are set */
} kj_child_answer;

/* Write a message to a buffer. They return false if memory is exhausted. */
bool kj_pack_start(const kj_child_start *start, kj_buffer *bytes);
bool kj_pack_request(const ki_types *types, const kj_child_request *request, kj_buffer *bytes);
bool kj_pack_answer(const ki_types *types, const kj_child_answer *answer, kj_buffer *bytes);
/* Read a message into the arena. They return NULL if the bytes are invalid. Modules in the
 * message belong to the context and use its types. If memory is exhausted, the functions leave by
 * longjmp. */
kj_child_start *kj_unpack_start(const void *bytes, size_t size_bytes, kj_arena *arena);
kj_child_request *kj_unpack_request(kjit_context *context, const void *bytes, size_t size_bytes,
                                    kj_arena *arena);
/* Reads an answer without trusting it. Returns false if no compiler can have sent such an answer.
 * Adds the compiler's messages to diagnostics. If *status is OK, code is filled in and owns its
 * memory. Exhausted memory is reported in *status. */
bool kj_take_answer(ki_types *types, const void *bytes, size_t size_bytes,
                    kj_diagnostics *diagnostics, kj_code *code, kjit_status *status);

#endif

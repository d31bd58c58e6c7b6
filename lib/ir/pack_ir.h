/* Serialization of modules, and of objects that refer to them, for another process of the same
 * build. This header has outlines of the kernel IR for kj_pack, and functions that also transfer
 * types. The numbers of types differ between processes, because each process has its own table of
 * types. */
#ifndef KJ_IR_PACK_IR_H
#define KJ_IR_PACK_IR_H

#include "ir/module.h"
#include "support/pack.h"

/* The outline of a module omits its context, table of types and kernels; the reader sets them. */
extern const kj_outline ki_module_outline, ki_function_outline, ki_decl_outline;

/* Like kj_pack, but NUMBER fields are kjit_type. Also appends the descriptions of all types that
 * occur. */
void ki_pack(const ki_types *types, const void *root, const kj_outline *outline, kj_arena *arena,
             kj_buffer *bytes);
/* Like kj_unpack. Adds missing types to this table. Returns NULL if the bytes were not created by
 * ki_pack. Jumps when out of memory. */
void *ki_unpack(ki_types *types, const void *bytes, size_t size_bytes, const kj_outline *outline,
                kj_arena *arena);

#endif

/* Modules, and what refers to them, as bytes for a process of the same build: outlines for kj_pack
 * of what the kernel IR is made of, and packing in which numbers of types keep their meaning
 * although the other process has a table of types of its own. */
#ifndef KJ_IR_PACK_IR_H
#define KJ_IR_PACK_IR_H

#include "ir/module.h"
#include "support/pack.h"

/* Of a module without its context, its table of types and its kernels: who reads it sets those. */
extern const kj_outline ki_module_outline, ki_function_outline, ki_decl_outline;

/* As kj_pack and kj_unpack; NUMBER fields are kjit_type. Appended are the types that are met, too.
 */
void ki_pack(const ki_types *types, const void *root, const kj_outline *outline, kj_arena *arena,
             kj_buffer *bytes);
/* Types that this table lacks are added to it. NULL: the bytes are nothing that ki_pack has made;
 * out of memory jumps. */
void *ki_unpack(ki_types *types, const void *bytes, size_t size_bytes, const kj_outline *outline,
                kj_arena *arena);

#endif

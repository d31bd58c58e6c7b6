/* Machine code of a relocatable object into this process without LLVM: for objects of the disk
 * cache. */
#ifndef KJ_CPU_OBJECT_H
#define KJ_CPU_OBJECT_H

#include "compiler.h"

typedef struct kj_image kj_image; /* an object in memory, ready to run */

/* The object comes from a file: nothing in it is believed. false: it is no object that this loader
 * takes, or calls what this process lacks; *reason says which, static storage. The bytes are not
 * used afterwards. */
bool kj_load_image(const void *object, size_t size_bytes, const char *entry,
                   const kj_outside *outside, kj_image **image, kj_cpu_kernel *kernel,
                   const char **reason);
void kj_unload_image(kj_image *image); /* NULL is fine */

#endif

/* Compiled code as a blob that another process takes in: entries as the disk cache has them, one
 * after the other. */
#ifndef KJ_DISPATCH_BLOB_H
#define KJ_DISPATCH_BLOB_H

#include "code/disk_state.h"

static inline bool kj_has_imports(const kj_runtime *runtime)
{
  return atomic_load_explicit(&runtime->imports, memory_order_acquire) != NULL;
}
/* true: code is filled in. */
bool kj_find_import(const kj_runtime *runtime, const kj_disk_key *key, kj_code *code);
void kj_free_imports(kj_runtime *runtime);
/* The machine code of a held specialization; malloc'd. */
kjit_status kj_copy_binary(kjit_specialization *specialization, kj_diagnostics *diagnostics,
                           void **binary, size_t *size_bytes);

#endif

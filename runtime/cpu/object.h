/* What the loader for objects (object.c) needs to know about the architecture: relocations, and the
 * stubs through which calls leave the object. relocate_<architecture>.c */
#ifndef KJ_CPU_OBJECT_H
#define KJ_CPU_OBJECT_H

#include <stddef.h>
#include <stdint.h>

/* A relocation of a section that lies in its final place, writable. The offset is at most the size
 * of the section; the loader has not compared what is written with the end of the section. */
typedef struct kj_relocation {
  uint32_t type;
  char *section;
  size_t section_bytes, offset;
  uint64_t symbol; /* the address of the symbol, or of the stub of a function outside the object */
  int64_t addend;
  const char *slot; /* of a function outside: where its address is; NULL: a symbol of the object */
} kj_relocation;

/* Returns why the relocation cannot be applied, in static storage; NULL: it is applied. */
const char *kj_relocate(const kj_relocation *r);
/* Writes a stub, which jumps to the address in the slot. Both lie in one mapping of less than 1
 * GiB, and the stub begins at a multiple of its size, a power of two. */
extern const size_t kj_stub_bytes;
void kj_write_stub(char *stub, const char *slot);

#endif

/* Interface between the object loader (object.c) and relocate_<architecture>.c: relocations, and
 * stubs through which calls leave the object. */
#ifndef KJ_CPU_OBJECT_H
#define KJ_CPU_OBJECT_H

#include <stddef.h>
#include <stdint.h>

/* A relocation. `section` is still writable and is at its final address. The offset is at most the
 * section size; kj_relocate has to check that the written bytes end inside the section. */
typedef struct kj_relocation {
  uint32_t type;
  char *section;
  size_t section_bytes, offset;
  uint64_t symbol; /* address of the symbol, or of the stub of an outside function */
  int64_t addend;
  /* where the address of an outside function is stored; NULL for a symbol in the object */
  const char *slot;
} kj_relocation;

/* Applies a relocation. Returns NULL, or the reason for failure in static storage. */
const char *kj_relocate(const kj_relocation *r);
/* Writes a stub that jumps to the address in the slot. Stub and slot lie in one mapping of less
 * than 1 GiB. The stub is aligned to its size, which is a power of two. */
extern const size_t kj_stub_bytes;
void kj_write_stub(char *stub, const char *slot);

#endif

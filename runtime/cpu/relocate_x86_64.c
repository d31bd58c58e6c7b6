/* Relocations of objects for x86-64 in the small code model, as defined in the AMD64 supplement of
 * the System V ABI. */
#include <elf.h>
#include <string.h>

#include "cpu/object.h"
#include "support/assert.h"

static const char does_not_fit[] = "a relocation does not fit";

static size_t room_of(const kj_relocation *r)
{
  KJ_ASSERT(r->offset <= r->section_bytes);
  return r->section_bytes - r->offset;
}

/* Writes the distance from the relocation's location to the address. */
static const char *write_distance(const kj_relocation *r, uint64_t address)
{
  char *place = r->section + r->offset;
  int64_t distance = (int64_t)address + r->addend - (int64_t)(uintptr_t)place;
  int32_t word = (int32_t)distance;
  if (room_of(r) < sizeof word || word != distance) return does_not_fit;
  memcpy(place, &word, sizeof word);
  return NULL;
}

static const char *write_address(const kj_relocation *r)
{
  uint64_t value = r->symbol + (uint64_t)r->addend;
  if (room_of(r) < sizeof value) return does_not_fit;
  memcpy(r->section + r->offset, &value, sizeof value);
  return NULL;
}

/* mov symbol@GOTPCREL(%rip), %r. An outside function has a slot for its address. For a symbol in
 * the object the instruction is replaced by a lea. */
static const char *relocate_indirect(const kj_relocation *r)
{
  enum { MOV = 0x8b, LEA = 0x8d };
  if (r->slot) return write_distance(r, (uint64_t)(uintptr_t)r->slot);
  char *opcode = r->section + r->offset - 2;
  if (r->offset < 2 || (unsigned char)*opcode != MOV)
    return "an instruction that reads an address is unknown";
  *opcode = (char)LEA;
  return write_distance(r, r->symbol);
}

const char *kj_relocate(const kj_relocation *r)
{
  switch (r->type) {
  case R_X86_64_PC32:
  case R_X86_64_PLT32: return write_distance(r, r->symbol);
  case R_X86_64_64: return write_address(r);
  case R_X86_64_GOTPCREL:
  case R_X86_64_GOTPCRELX:
  case R_X86_64_REX_GOTPCRELX: return relocate_indirect(r);
  default: return "it has a relocation of an unknown kind";
  }
}

const size_t kj_stub_bytes = 8;

/* jmp *distance(%rip) */
void kj_write_stub(char *stub, const char *slot)
{
  enum { JUMP_BYTES = 6 };
  static const unsigned char opcode[] = { 0xff, 0x25 };
  int64_t from_end = slot - (stub + JUMP_BYTES);
  int32_t distance = (int32_t)from_end;
  KJ_ASSERT(distance == from_end);
  memcpy(stub, opcode, sizeof opcode);
  memcpy(stub + sizeof opcode, &distance, sizeof distance);
}

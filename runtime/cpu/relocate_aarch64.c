/* Relocations of objects for AArch64 in the small code model, as defined in "ELF for the Arm 64-bit
 * Architecture" (IHI 0056). S is the symbol, A the addend, P the place, and Page(x) is x without
 * its low 12 bits. */
#include <elf.h>
#include <stdbool.h>
#include <string.h>

#include "cpu/object.h"
#include "support/assert.h"

static const char does_not_fit[] = "a relocation does not fit";

static bool is_room(const kj_relocation *r, size_t bytes)
{
  KJ_ASSERT(r->offset <= r->section_bytes);
  return bytes <= r->section_bytes - r->offset;
}

static bool is_signed(int64_t value, unsigned bits)
{
  return value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << (bits - 1);
}

/* ---- data ---- */

static const char *write_data(const kj_relocation *r, int64_t value, unsigned bits)
{
  char *place = r->section + r->offset;
  if (!is_room(r, bits / 8)) return does_not_fit;
  if (bits < 64 && !is_signed(value, bits)) return does_not_fit;
  memcpy(place, &value, bits / 8); /* little-endian */
  return NULL;
}

/* ---- instructions ---- */

/* Writes a bit field of the instruction. */
static const char *write_field(const kj_relocation *r, uint32_t value, unsigned first,
                               unsigned bits)
{
  char *place = r->section + r->offset;
  uint32_t instruction, mask = ((uint32_t)1 << bits) - 1;
  if (!is_room(r, sizeof instruction) || r->offset % sizeof instruction) return does_not_fit;
  memcpy(&instruction, place, sizeof instruction);
  instruction = (instruction & ~(mask << first)) | (value & mask) << first;
  memcpy(place, &instruction, sizeof instruction);
  return NULL;
}

/* Writes the distance of a branch, in instructions. */
static const char *write_branch(const kj_relocation *r, int64_t distance, unsigned first,
                                unsigned bits)
{
  if (distance % 4 || !is_signed(distance, bits + 2)) return does_not_fit;
  return write_field(r, (uint32_t)(distance / 4), first, bits);
}

/* Writes the immediate operand of adr or adrp, whose low two bits are in a separate field. */
static const char *write_adr(const kj_relocation *r, int64_t number)
{
  if (!is_signed(number, 21)) return does_not_fit;
  const char *reason = write_field(r, (uint32_t)number & 3, 29, 2);
  return reason ? reason : write_field(r, (uint32_t)((uint64_t)number >> 2), 5, 19);
}

static int64_t page_of(uint64_t address) { return (int64_t)(address >> 12); }

static const char *write_page(const kj_relocation *r, uint64_t address)
{
  uint64_t place = (uint64_t)(uintptr_t)(r->section + r->offset);
  return write_adr(r, page_of(address) - page_of(place));
}

/* Writes the low 12 bits of an address in an add, or in a load or store of 1 << shift bytes. */
static const char *write_low_bits(const kj_relocation *r, uint64_t address, unsigned shift)
{
  uint32_t low = (uint32_t)(address & 0xfff);
  if (low & (((uint32_t)1 << shift) - 1)) return does_not_fit;
  return write_field(r, low >> shift, 10, 12);
}

/* adrp x, :got:symbol; ldr y, [x, :got_lo12:symbol]. An outside function has a slot for its
 * address. A symbol's address in the object is computed instead of loaded: the adrp gets the
 * symbol's page, and the ldr is replaced by an add. */
static const char *relocate_indirect_page(const kj_relocation *r)
{
  if (r->addend) return does_not_fit;
  return write_page(r, r->slot ? (uint64_t)(uintptr_t)r->slot : r->symbol);
}

static const char *relocate_indirect_load(const kj_relocation *r)
{
  enum { REGISTERS = 0x3ff };
  const uint32_t load = 0xf9400000, add = 0x91000000; /* 64-bit instructions with the immediate 0 */
  char *place = r->section + r->offset;
  uint32_t instruction;
  if (r->addend || !is_room(r, sizeof instruction)) return does_not_fit;
  memcpy(&instruction, place, sizeof instruction);
  if ((instruction & ~(uint32_t)REGISTERS) != load)
    return "an instruction that reads an address is unknown";
  if (r->slot) return write_low_bits(r, (uint64_t)(uintptr_t)r->slot, 3);
  instruction = add | (instruction & REGISTERS);
  memcpy(place, &instruction, sizeof instruction);
  return write_low_bits(r, r->symbol, 0);
}

/* ---- all relocations ---- */

const char *kj_relocate(const kj_relocation *r)
{
  uint64_t target = r->symbol + (uint64_t)r->addend; /* S + A */
  int64_t distance = (int64_t)(target - (uint64_t)(uintptr_t)(r->section + r->offset));
  switch (r->type) {
  case R_AARCH64_ABS64: return write_data(r, (int64_t)target, 64);
  case R_AARCH64_PREL64: return write_data(r, distance, 64);
  case R_AARCH64_PREL32: return write_data(r, distance, 32);
  case R_AARCH64_CALL26:
  case R_AARCH64_JUMP26: return write_branch(r, distance, 0, 26);
  case R_AARCH64_CONDBR19: return write_branch(r, distance, 5, 19);
  case R_AARCH64_TSTBR14: return write_branch(r, distance, 5, 14);
  case R_AARCH64_ADR_PREL_LO21: return write_adr(r, distance);
  case R_AARCH64_ADR_PREL_PG_HI21: return write_page(r, target);
  case R_AARCH64_ADD_ABS_LO12_NC:
  case R_AARCH64_LDST8_ABS_LO12_NC: return write_low_bits(r, target, 0);
  case R_AARCH64_LDST16_ABS_LO12_NC: return write_low_bits(r, target, 1);
  case R_AARCH64_LDST32_ABS_LO12_NC: return write_low_bits(r, target, 2);
  case R_AARCH64_LDST64_ABS_LO12_NC: return write_low_bits(r, target, 3);
  case R_AARCH64_LDST128_ABS_LO12_NC: return write_low_bits(r, target, 4);
  case R_AARCH64_ADR_GOT_PAGE: return relocate_indirect_page(r);
  case R_AARCH64_LD64_GOT_LO12_NC: return relocate_indirect_load(r);
  default: return "it has a relocation of an unknown kind";
  }
}

enum { STUB_BYTES = 16 };
const size_t kj_stub_bytes = STUB_BYTES;

/* adrp x16, slot; ldr x16, [x16, low bits of slot]; br x16. Calls may overwrite x16. */
void kj_write_stub(char *stub, const char *slot)
{
  static const uint32_t instructions[STUB_BYTES / 4] = { 0x90000010, 0xf9400210, 0xd61f0200 };
  memcpy(stub, instructions, sizeof instructions);
  kj_relocation page = { .section = stub, .section_bytes = sizeof instructions },
                load = { .section = stub, .section_bytes = sizeof instructions, .offset = 4 };
  const char *reason = write_page(&page, (uint64_t)(uintptr_t)slot);
  if (!reason) reason = write_low_bits(&load, (uint64_t)(uintptr_t)slot, 3);
  KJ_ASSERT(!reason);
  (void)reason;
}

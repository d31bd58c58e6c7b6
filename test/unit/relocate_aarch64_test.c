/* Relocations for AArch64, on any machine: a decoder of the instructions computes the addresses
 * that a processor would use, at random places and for random symbols, and the test compares them
 * with the addresses that the relocations mean. Every other bit of the code must stay as it was. */
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../seed.h"
#include "kj_test.h"

/* Renamed, because the library for this architecture may have functions with these names. */
#define kj_relocate relocate_aarch64
#define kj_write_stub write_stub_aarch64
#define kj_stub_bytes stub_bytes_aarch64
#include "../../runtime/cpu/relocate_aarch64.c" /* NOLINT(bugprone-suspicious-include) */

enum { CODE_BYTES = 1 << 16, ROUNDS = 20000 };
static char code[CODE_BYTES] __attribute__((aligned(4096)));
static uint64_t state_of_random;

static uint64_t next_random(void)
{
  state_of_random += 0x9e3779b97f4a7c15;
  uint64_t z = state_of_random;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

/* ---- a processor ---- */

static int64_t sign_extend(uint64_t value, unsigned bits)
{
  return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

static uint64_t field(uint32_t instruction, unsigned first, unsigned bits)
{
  return instruction >> first & (((uint32_t)1 << bits) - 1);
}

/* Returns the value that the instruction computes, or the address to which it branches. base is the
 * value of its register. */
static uint64_t execute(uint32_t i, uint64_t place, uint64_t base)
{
  uint64_t adr = field(i, 5, 19) << 2 | field(i, 29, 2);
  if ((i & 0x9f000000) == 0x90000000) /* adrp */
    return (place & ~(uint64_t)0xfff) + (uint64_t)(sign_extend(adr, 21) * 4096);
  if ((i & 0x9f000000) == 0x10000000) /* adr */
    return place + (uint64_t)sign_extend(adr, 21);
  if ((i & 0x7c000000) == 0x14000000) /* b, bl */
    return place + (uint64_t)(sign_extend(field(i, 0, 26), 26) * 4);
  if ((i & 0xff000010) == 0x54000000) /* b.cond */
    return place + (uint64_t)(sign_extend(field(i, 5, 19), 19) * 4);
  if ((i & 0x7e000000) == 0x36000000) /* tbz, tbnz */
    return place + (uint64_t)(sign_extend(field(i, 5, 14), 14) * 4);
  if ((i & 0xffc00000) == 0x91000000) /* 64-bit add */
    return base + field(i, 10, 12);
  assert_int_equal(i & 0x3b000000, 0x39000000); /* a load or store, whose offset counts elements */
  bool is_wide = field(i, 26, 1) && field(i, 23, 1) && !field(i, 30, 2);
  return base + (field(i, 10, 12) << (is_wide ? 4 : field(i, 30, 2)));
}

/* ---- one relocation ---- */

static uint32_t read_code(size_t offset)
{
  uint32_t instruction;
  memcpy(&instruction, code + offset, sizeof instruction);
  return instruction;
}

static void write_code(size_t offset, uint32_t instruction)
{
  memcpy(code + offset, &instruction, sizeof instruction);
}

static uint64_t address_at(size_t offset) { return (uint64_t)(uintptr_t)(code + offset); }

static const char *apply(uint32_t type, size_t offset, uint64_t symbol, int64_t addend)
{
  kj_relocation r = { type, code, CODE_BYTES, offset, symbol, addend, NULL };
  return kj_relocate(&r);
}

/* An instruction whose field has random bits before the relocation, and the distance that it can
 * reach. */
typedef struct row {
  uint32_t type, instruction, field;
  int64_t least, most; /* range of the distance from the place; 0 means any distance within 1 GiB */
  unsigned alignment;  /* of the address */
} row;

#define MIB ((int64_t)1 << 20)
static const row rows[] = {
  { R_AARCH64_CALL26, 0x94000000, 0x03ffffff, -128 * MIB, 128 * MIB - 4, 4 },
  { R_AARCH64_JUMP26, 0x14000000, 0x03ffffff, -128 * MIB, 128 * MIB - 4, 4 },
  { R_AARCH64_CONDBR19, 0x5400000c, 0x00ffffe0, -MIB, MIB - 4, 4 },
  { R_AARCH64_TSTBR14, 0x36180005, 0x0007ffe0, -32768, 32764, 4 },
  { R_AARCH64_ADR_PREL_LO21, 0x10000011, 0x60ffffe0, -MIB, MIB - 1, 1 },
  { R_AARCH64_ADR_PREL_PG_HI21, 0x90000013, 0x60ffffe0, 0, 0, 1 },
  { R_AARCH64_ADR_GOT_PAGE, 0x90000013, 0x60ffffe0, 0, 0, 1 },
  { R_AARCH64_ADD_ABS_LO12_NC, 0x91000273, 0x003ffc00, 0, 0, 1 },
  { R_AARCH64_LDST8_ABS_LO12_NC, 0x39400260, 0x003ffc00, 0, 0, 1 },    /* ldrb */
  { R_AARCH64_LDST16_ABS_LO12_NC, 0x7d400260, 0x003ffc00, 0, 0, 2 },   /* ldr h */
  { R_AARCH64_LDST32_ABS_LO12_NC, 0xbd400260, 0x003ffc00, 0, 0, 4 },   /* ldr s */
  { R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400260, 0x003ffc00, 0, 0, 8 },   /* ldr x */
  { R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00260, 0x003ffc00, 0, 0, 16 }, /* ldr q */
};
enum { ROWS = sizeof rows / sizeof *rows };

static bool is_page(const row *r)
{
  return r->type == R_AARCH64_ADR_PREL_PG_HI21 || r->type == R_AARCH64_ADR_GOT_PAGE;
}

/* Returns the value that the instruction has to compute. */
static uint64_t meant(const row *r, uint64_t target)
{
  return is_page(r) ? target & ~(uint64_t)0xfff : target;
}

static int64_t choose_distance(const row *r)
{
  int64_t least = r->most ? r->least : -1024 * MIB, most = r->most ? r->most : 1024 * MIB;
  uint64_t chosen = next_random();
  if (chosen % 16 == 0) return least;
  if (chosen % 16 == 1) return most;
  return least + (int64_t)(chosen / 16 % (uint64_t)(most - least));
}

static void test_instructions(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    const row *r = &rows[next_random() % ROWS];
    size_t offset = next_random() % (CODE_BYTES / 4) * 4;
    uint64_t target = address_at(offset) + (uint64_t)choose_distance(r);
    target &= ~(uint64_t)(r->alignment - 1);
    int64_t addend = r->type == R_AARCH64_ADR_GOT_PAGE ? 0 : (int64_t)(next_random() % 4096) - 2048;
    write_code(offset, r->instruction | ((uint32_t)next_random() & r->field));
    assert_null(apply(r->type, offset, target - (uint64_t)addend, addend));
    uint32_t made = read_code(offset);
    assert_int_equal(made & ~r->field, r->instruction);
    assert_true(execute(made, address_at(offset), target & ~(uint64_t)0xfff) == meant(r, target));
  }
}

static void test_reach(void **state)
{
  (void)state;
  for (size_t i = 0; i < ROWS; i++) {
    const row *r = &rows[i];
    write_code(64, r->instruction);
    if (r->most) {
      assert_non_null(apply(r->type, 64, address_at(64) + (uint64_t)r->most + r->alignment, 0));
      assert_non_null(apply(r->type, 64, address_at(64) + (uint64_t)r->least - r->alignment, 0));
    }
    if (r->alignment > 1) assert_non_null(apply(r->type, 64, address_at(64) + r->alignment / 2, 0));
    /* no instruction begins at this address */
    assert_non_null(apply(r->type, 66, address_at(0), 0));
    assert_non_null(apply(r->type, CODE_BYTES, address_at(0), 0));
    assert_int_equal(read_code(64), r->instruction);
  }
  assert_non_null(apply(R_AARCH64_ADR_PREL_PG_HI21, 64, address_at(64) + ((uint64_t)1 << 33), 0));
  assert_non_null(apply(R_AARCH64_TLSDESC_CALL, 64, address_at(0), 0));
}

static void test_data(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    size_t offset = next_random() % (CODE_BYTES - 8);
    int64_t distance = sign_extend(next_random(), 32), value64;
    int32_t value32;
    uint64_t target = address_at(offset) + (uint64_t)distance;
    assert_null(apply(R_AARCH64_PREL32, offset, target - 5, 5));
    memcpy(&value32, code + offset, sizeof value32);
    assert_true(value32 == distance);
    assert_null(apply(R_AARCH64_PREL64, offset, target + 3, -3));
    memcpy(&value64, code + offset, sizeof value64);
    assert_true(value64 == distance);
    assert_null(apply(R_AARCH64_ABS64, offset, target + 3, -3));
    memcpy(&value64, code + offset, sizeof value64);
    assert_true((uint64_t)value64 == target);
  }
  assert_non_null(apply(R_AARCH64_PREL32, 0, address_at(0) + ((uint64_t)1 << 31), 0));
  assert_non_null(apply(R_AARCH64_PREL32, CODE_BYTES - 3, address_at(0), 0));
  assert_non_null(apply(R_AARCH64_ABS64, CODE_BYTES - 7, address_at(0), 0));
}

/* ---- addresses in memory ---- */

/* For a function outside of the object, adrp and ldr load the contents of the slot. For a symbol of
 * the object they compute its address. */
static void test_indirect(void **state)
{
  (void)state;
  enum { ADRP = 0x90000013, LDR = 0xf9400264 /* x4, [x19] */ };
  for (int round = 0; round < ROUNDS; round++) {
    size_t page_at = next_random() % (CODE_BYTES / 8) * 4, load_at = page_at + CODE_BYTES / 2;
    bool is_outside = round % 2;
    uint64_t symbol = address_at(0) + next_random() % (uint64_t)(512 * MIB);
    kj_relocation r = { R_AARCH64_ADR_GOT_PAGE, code, CODE_BYTES, page_at, symbol, 0, NULL };
    uint64_t wanted = is_outside ? symbol & ~(uint64_t)7 : symbol;
    if (is_outside) r.slot = (const char *)(uintptr_t)wanted;
    write_code(page_at, ADRP);
    write_code(load_at, LDR);
    assert_null(kj_relocate(&r));
    r.type = R_AARCH64_LD64_GOT_LO12_NC;
    r.offset = load_at;
    assert_null(kj_relocate(&r));
    uint32_t load = read_code(load_at);
    uint64_t page = execute(read_code(page_at), address_at(page_at), 0);
    assert_true(execute(load, address_at(load_at), page) == wanted);
    assert_true((load & 0xffc00000) == (is_outside ? 0xf9400000 : 0x91000000));
    assert_int_equal(load & 0x3ff, LDR & 0x3ff);
  }
  write_code(0, 0xb9400264); /* a load of 32 bits */
  assert_non_null(apply(R_AARCH64_LD64_GOT_LO12_NC, 0, address_at(0), 0));
}

static void test_stubs(void **state)
{
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    size_t offset = next_random() % (CODE_BYTES / kj_stub_bytes) * kj_stub_bytes;
    uint64_t slot = (address_at(0) + next_random() % (uint64_t)(1023 * MIB)) & ~(uint64_t)7;
    kj_write_stub(code + offset, (const char *)(uintptr_t)slot);
    uint64_t page = execute(read_code(offset), address_at(offset), 0);
    assert_true(execute(read_code(offset + 4), address_at(offset + 4), page) == slot);
    assert_int_equal(read_code(offset) & 31, 16);
    assert_int_equal(read_code(offset + 4) & 0x3ff, 16 << 5 | 16);
    assert_int_equal(read_code(offset + 8), 0xd61f0000 | 16 << 5); /* br x16 */
  }
}

int main(void)
{
  state_of_random = kj_draw_seed();
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_instructions), cmocka_unit_test(test_reach), cmocka_unit_test(test_data),
    cmocka_unit_test(test_indirect),     cmocka_unit_test(test_stubs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

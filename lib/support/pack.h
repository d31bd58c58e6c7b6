/* Structs as bytes, for a process of the same build: what is reached from one struct, through
 * tables that say where its pointers are. The same tables write and read. */
#ifndef KJ_SUPPORT_PACK_H
#define KJ_SUPPORT_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "support/containers.h"

typedef struct kj_outline kj_outline;

typedef enum kj_field_kind {
  KJ_FIELD_POINTER,  /* to one struct of .outline, which several may point to */
  KJ_FIELD_POINTERS, /* to an array of such pointers */
  KJ_FIELD_ITEMS,    /* to an array of structs of .outline that nothing else points to */
  KJ_FIELD_TEXT,     /* to a text with a 0 behind it */
  KJ_FIELD_TEXTS,    /* to an array of such pointers */
  KJ_FIELD_BYTES,    /* to bytes without pointers, in units of .size_bytes */
  KJ_FIELD_ROW,      /* to a row of the static table .rows */
  KJ_FIELD_NUMBER,   /* 32 bits that mean something else in each process, see kj_pack_numbers */
  KJ_FIELD_DROPPED   /* .size_bytes that become 0 */
} kj_field_kind;

typedef struct kj_static_rows {
  const void *first;
  size_t row_bytes, count;
} kj_static_rows;

typedef struct kj_field {
  kj_field_kind kind;
  size_t offset;
  /* of arrays: where the struct has their count, and how many bytes that has; or measure says how
   * many there are, by the fields before this one */
  size_t count_offset, count_bytes;
  size_t (*measure)(const void *item, const void *user);
  size_t size_bytes;
  const kj_outline *outline;
  const kj_static_rows *rows;
} kj_field;

struct kj_outline {
  size_t size_bytes;
  const kj_field *fields;
  size_t field_count;
};

#define KJ_FIELD_COUNT_OF(type, field) \
  .count_offset = offsetof(type, field), .count_bytes = sizeof(((type *)0)->field)
#define KJ_OUTLINE(name, type) \
  const kj_outline name = { sizeof(type), name##_fields, \
                            sizeof name##_fields / sizeof *name##_fields }

/* What NUMBER fields become. Writing: map is told each of them, and its result is ignored. Reading:
 * *number is replaced; false: there is none. user is measure's, too. */
typedef struct kj_pack_numbers {
  bool (*map)(void *user, uint32_t *number);
  void *user;
} kj_pack_numbers;

/* Appends root and what it reaches to bytes. Out of memory sets bytes->failed, or jumps through the
 * arena, which is scratch. */
void kj_pack(const void *root, const kj_outline *outline, const kj_pack_numbers *numbers,
             kj_arena *arena, kj_buffer *bytes);

/* What kj_pack has made, in the arena. Nothing in the bytes is believed: they may come from a
 * process that is out of its mind. All pointers of what is returned are as the outlines say, and it
 * takes no more memory than the bytes and what a map over them needs; whether its plain fields make
 * sense is the caller's to see. NULL: the bytes are no such thing. Out of memory jumps. */
void *kj_unpack(const void *bytes, size_t size_bytes, const kj_outline *outline,
                const kj_pack_numbers *numbers, kj_arena *arena);

#endif

/* Serialization of structs for another process of the same build. The data consist of a struct and
 * all objects to which it refers directly or indirectly. Tables (outlines) describe the pointers in
 * each struct, both for writing and for reading. */
#ifndef KJ_SUPPORT_PACK_H
#define KJ_SUPPORT_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "support/containers.h"

typedef struct kj_outline kj_outline;

typedef enum kj_field_kind {
  /* pointer to a struct of .outline; several pointers can refer to the same struct */
  KJ_FIELD_POINTER,
  KJ_FIELD_POINTERS, /* pointer to an array of such pointers */
  /* pointer to an array of structs of .outline, to which no other pointer refers */
  KJ_FIELD_ITEMS,
  KJ_FIELD_TEXT,  /* pointer to a 0-terminated string */
  KJ_FIELD_TEXTS, /* pointer to an array of such pointers */
  /* pointer to bytes that contain no pointers; .size_bytes is an element's size */
  KJ_FIELD_BYTES,
  KJ_FIELD_ROW,    /* pointer to a row of the static table .rows */
  KJ_FIELD_NUMBER, /* 32-bit number that differs between processes (kj_pack_numbers) */
  KJ_FIELD_DROPPED /* .size_bytes bytes, which are replaced by 0 */
} kj_field_kind;

typedef struct kj_static_rows {
  const void *first;
  size_t row_bytes, count;
} kj_static_rows;

typedef struct kj_field {
  kj_field_kind kind;
  size_t offset;
  /* The number of elements in an array. The number is either a field in the struct, given by the
   * offset and that field's size, or the result of `measure`, which can use the fields that precede
   * this field. */
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

/* Handles NUMBER fields. While writing, map is called for each number, and its result is ignored.
 * While reading, map replaces *number, and returns false if the number is invalid. user is also
 * passed to measure. */
typedef struct kj_pack_numbers {
  bool (*map)(void *user, uint32_t *number);
  void *user;
} kj_pack_numbers;

/* Appends root, and all objects to which it refers, to bytes. arena is used for temporary data.
 * When out of memory, sets bytes->failed or jumps through the arena. */
void kj_pack(const void *root, const kj_outline *outline, const kj_pack_numbers *numbers,
             kj_arena *arena, kj_buffer *bytes);

/* Returns the struct that kj_pack has written. It is allocated in the arena. The bytes are not
 * trusted, because the process that wrote them may be corrupted. All pointers in the result are
 * valid according to the outlines, and the memory used is at most proportional to the size of the
 * bytes. The caller must check all other fields. Returns NULL if the bytes are invalid. Jumps when
 * out of memory. */
void *kj_unpack(const void *bytes, size_t size_bytes, const kj_outline *outline,
                const kj_pack_numbers *numbers, kj_arena *arena);

#endif

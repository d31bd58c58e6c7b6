/* Logs of arrays that loops read and change (array_log.c describes them): declarations for
 * array_log.c and array_log_plan.c. */
#ifndef KJ_DERIVE_ARRAY_LOG_H
#define KJ_DERIVE_ARRAY_LOG_H

#include "derive/derive.h"

/* The part of a log that holds the overwritten elements of one type. */
typedef struct kd_kept_values {
  kjit_type type;
  kt_var *array;
} kd_kept_values;

/* The variables that hold the entries of a log. An entry describes one store: the store indices,
 * and the element that the store overwrote. */
typedef struct kd_log_memory {
  /* depth: the current number of entries. places: the indices that each store wrote to; NULL if the
   * entries need no indices */
  kt_var *depth, *places;
  KJ_LIST(kd_kept_values) values;
  uint64_t most; /* maximum number of entries, which is the size of the arrays */
  bool is_sure;  /* the structure of the loops guarantees the maximum */
} kd_log_memory;

struct kd_log {
  kt_var *root;                    /* the logged array */
  KJ_LIST(const kt_stmt *) stores; /* the stores to the array that save the overwritten element */
  /* Number of integers in `places` for each entry: the indices, preceded by the number of the store
   * if the log has several stores. */
  uint32_t width;
  kd_log_memory memory[2]; /* [0]: for the first run of the func; [1]: for bodies that run again */
  kt_var *end;             /* the number of entries after the first run */
};

/* The number of entries that a list of statements adds to a log. */
typedef struct kd_entries {
  uint64_t most; /* the maximum */
  bool is_exact; /* the number is always equal to the maximum */
  bool is_sure;  /* the structure of the loops guarantees the maximum */
} kd_entries;

/* Returns a store's position in a log, or -1 if the log is NULL or does not contain the store.
 * */
int kd_find_store(const kd_log *log, const kt_stmt *stmt);
kd_entries kd_count_entries(kd_derivation *d, const kd_log *log, const kt_stmts *stmts);

typedef KJ_LIST(kt_expr **) kd_operand_places;
/* Lists the numbers in an access array[indices] that determine which element of the root array it
 * accesses. */
kd_operand_places kd_list_numbers(kd_derivation *d, kt_expr *array, kt_exprs *indices);
kjit_type kd_element_of(const kd_derivation *d, const kt_stmt *store);
/* Returns the array that holds the saved elements of a type. */
kt_var *kd_find_values(const kd_log_memory *memory, kjit_type type);
/* Adds a thread-local array to a log, with space for `most` entries of `width` numbers. `holds`
 * describes the entries in the list of facts. */
kt_var *kd_add_log_array(kd_derivation *d, const kd_log *log, const char *name, kjit_type element,
                         uint64_t most, uint32_t width, const char *holds);

#endif

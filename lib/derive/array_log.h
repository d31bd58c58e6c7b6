/* Logs of arrays that loops read and change: what array_log.c and array_log_plan.c share. */
#ifndef KJ_DERIVE_ARRAY_LOG_H
#define KJ_DERIVE_ARRAY_LOG_H

#include "derive/derive.h"

typedef struct kd_kept_values {
  kjit_type type;
  kt_var *array;
} kd_kept_values;

typedef struct kd_log_memory {
  kt_var *depth, *places; /* places: NULL if the entries need no indices */
  KJ_LIST(kd_kept_values) values;
  uint64_t most;
  bool is_sure; /* the loops alone guarantee that there are at most this many entries */
} kd_log_memory;

struct kd_log {
  kt_var *root;
  KJ_LIST(const kt_stmt *) stores; /* the stores of the body that keep what they overwrite */
  uint32_t width;                  /* numbers in an entry: of the store, then its indices */
  kd_log_memory memory[2];         /* of the func's own run; of bodies that run again */
  kt_var *end;                     /* how many entries the func's own run has made */
};

/* How many entries some statements make. */
typedef struct kd_entries {
  uint64_t most;
  bool is_exact; /* it is always this number */
  bool is_sure;
} kd_entries;

/* The position of a store among the stores of a log (NULL: none); -1: it is not among them. */
int kd_find_store(const kd_log *log, const kt_stmt *stmt);
kd_entries kd_count_entries(kd_derivation *d, const kd_log *log, const kt_stmts *stmts);

typedef KJ_LIST(kt_expr **) kd_operand_places;
/* The numbers that say which element of its root an array with indices leads to. */
kd_operand_places kd_list_numbers(kd_derivation *d, kt_expr *array, kt_exprs *indices);
kjit_type kd_element_of(const kd_derivation *d, const kt_stmt *store);
/* The kept elements of a type. */
kt_var *kd_find_values(const kd_log_memory *memory, kjit_type type);
/* A new array of the thread that belongs to a log. width: the numbers of an entry. */
kt_var *kd_add_log_array(kd_derivation *d, const kd_log *log, const char *name, kjit_type element,
                         uint64_t most, uint32_t width);

#endif

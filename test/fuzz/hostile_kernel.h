/* Generates kernels that try to access memory outside of their arrays, from a list of choices:
 * large, negative and computed subscripts, slices and views with any bounds, shared and local
 * arrays, structs, atomics, barriers and exchanges at any place, calls of kjit's library modules
 * with wrong arguments. Type inference succeeds for most of these kernels. */
#ifndef HOSTILE_KERNEL_H
#define HOSTILE_KERNEL_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HOSTILE_MOST_BYTES = 1 << 14, HOSTILE_MOST_NAMES = 24 };

typedef struct hostile_array {
  char name[8];
  unsigned rank;
  /* true for a shared or local array that is viewed with other element types */
  int is_own;
} hostile_array;

typedef struct hostile_writer {
  const uint8_t *choices;
  size_t count, at;
  char *text;
  size_t used;
  hostile_array arrays[HOSTILE_MOST_NAMES];
  unsigned array_count, number_count, depth, indent;
  int is_in_range; /* no barriers, no exchanges */
  unsigned next;   /* name */
} hostile_writer;

/* Returns a choice. When the list is exhausted, every choice is 0, so that the kernel ends. */
static inline unsigned hostile_choose(hostile_writer *w, unsigned count)
{
  return w->at < w->count ? w->choices[w->at++] % count : 0;
}

__attribute__((format(printf, 2, 3))) static inline void hostile_put(hostile_writer *w,
                                                                     const char *format, ...)
{
  va_list list;
  size_t room = HOSTILE_MOST_BYTES - w->used;
  va_start(list, format);
  int written = vsnprintf(w->text + w->used, room, format, list);
  va_end(list);
  if (written > 0 && (size_t)written < room) w->used += (size_t)written;
  else w->at = w->count;
}

static inline void hostile_number(hostile_writer *w, unsigned depth);

static inline const hostile_array *hostile_pick(hostile_writer *w)
{
  return &w->arrays[hostile_choose(w, w->array_count)];
}

/* Most subscripts are close to the valid range, because a failing subscript ends the thread and
 * hides the following statements. */
static inline void hostile_index(hostile_writer *w, const char *array, unsigned d, unsigned depth)
{
  switch (array ? hostile_choose(w, 8) : 7) {
  case 0:
  case 1: hostile_put(w, "%u", hostile_choose(w, 4)); return;
  case 2: hostile_put(w, "threadIdx.x %% max(%s.shape[%u], 1)", array, d); return;
  case 3:
    hostile_put(w, "i64(");
    hostile_number(w, depth);
    hostile_put(w, ") %% %s.shape[%u]", array, d);
    return;
  case 4:
    hostile_put(w, "min(max(i64(");
    hostile_number(w, depth);
    hostile_put(w, "), 0), %s.shape[%u] - 1)", array, d);
    return;
  case 5: hostile_put(w, "-%u", 1 + hostile_choose(w, 3)); return;
  default:
    hostile_put(w, "i64(");
    hostile_number(w, depth);
    hostile_put(w, ")");
  }
}

static inline void hostile_indices(hostile_writer *w, const char *array, unsigned rank,
                                   unsigned depth)
{
  for (unsigned i = 0; i < rank; i++) {
    if (i) hostile_put(w, ", ");
    hostile_index(w, array, i, depth);
  }
}

static inline void hostile_element(hostile_writer *w, unsigned depth)
{
  const hostile_array *a = hostile_pick(w);
  hostile_put(w, "%s[", a->name);
  hostile_indices(w, a->name, a->rank, depth);
  hostile_put(w, "]");
}

/* Writes an integer of any size and type. */
static inline void hostile_number(hostile_writer *w, unsigned depth)
{
  static const char *const leaves[] = { "0",
                                        "threadIdx.x",
                                        "n",
                                        "m",
                                        "i64(q)",
                                        "1",
                                        "3",
                                        "blockIdx.x",
                                        "grid(1)",
                                        "(z - 1)",
                                        "(z + 4294967296)",
                                        "(z + 1099511627776)",
                                        "(z + 9223372036854775807)",
                                        "(z - 9223372036854775807 - 1)",
                                        "(z + 2147483647)",
                                        "(z - 2147483648)",
                                        "laneid",
                                        "blockDim.x",
                                        "(z ^ -1)",
                                        "(z + 100000)",
                                        "63" };
  static const char *const binaries[] = { "+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^" };
  static const char *const casts[] = {
    "i64", "i32", "u8", "u32", "i8", "u64", "i16", "f32", "f64"
  };
  static const char *const calls[] = { "min",    "max",       "mulhi",    "ceil_div",
                                       "abs_of", "div_trunc", "rem_trunc" };
  unsigned kind = depth ? hostile_choose(w, 12) : 0;
  if (w->depth > 60) kind = 0;
  w->depth++;
  switch (kind) {
  case 1:
  case 2:
    hostile_put(w, "(i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, ") %s i64(", binaries[hostile_choose(w, 10)]);
    hostile_number(w, depth - 1);
    hostile_put(w, "))");
    break;
  case 3:
    hostile_put(w, "i64(%s(i64(", casts[hostile_choose(w, 9)]);
    hostile_number(w, depth - 1);
    hostile_put(w, ")))");
    break;
  case 4:
    hostile_put(w, "to_number(");
    hostile_element(w, depth - 1);
    hostile_put(w, ")");
    break;
  case 5:
    hostile_put(w, "%s.%s", hostile_pick(w)->name, hostile_choose(w, 2) ? "size" : "ndim");
    break;
  case 6:
    hostile_put(w, "select(");
    hostile_number(w, depth - 1);
    hostile_put(w, " < ");
    hostile_number(w, depth - 1);
    hostile_put(w, ", i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, "), i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, "))");
    break;
  case 7: {
    const char *name = calls[hostile_choose(w, 7)];
    hostile_put(w, "%s(i64(", name);
    hostile_number(w, depth - 1);
    hostile_put(w, "), i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, "))");
    break;
  }
  case 8:
    if (w->number_count) {
      hostile_put(w, "k%u", hostile_choose(w, w->number_count));
      break;
    }
    hostile_put(w, "n");
    break;
  case 9:
    hostile_put(w, "(-i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, "))");
    break;
  case 10: {
    const hostile_array *a = hostile_pick(w);
    hostile_put(w, a->rank ? "(len(%s) - 1)" : "%s.ndim", a->name);
    break;
  }
  case 11:
    hostile_put(w, "(i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, ") ? i64(");
    hostile_number(w, depth - 1);
    hostile_put(w, ") : threadIdx.x)");
    break;
  default: hostile_put(w, "%s", leaves[hostile_choose(w, sizeof leaves / sizeof *leaves)]);
  }
  w->depth--;
}

static inline void hostile_line(hostile_writer *w)
{
  hostile_put(w, "\n%*s", (int)(2 * w->indent), "");
}

static inline hostile_array *hostile_add(hostile_writer *w, unsigned rank, int is_own)
{
  unsigned at = w->array_count < HOSTILE_MOST_NAMES ? w->array_count++ : 3;
  hostile_array *a = &w->arrays[at];
  snprintf(a->name, sizeof a->name, "v%u", w->next++ % 10000);
  a->rank = rank;
  a->is_own = is_own;
  return a;
}

/* Writes a view of an existing array, with any bounds. */
static inline void hostile_view(hostile_writer *w)
{
  static const char *const types[] = { "u8", "i64", "f32", "bool", "i32x4", "P", "f64", "u16" };
  hostile_array from = *hostile_pick(w);
  unsigned kind = hostile_choose(w, 6);
  if (from.is_own && kind < 3) {
    hostile_put(w, "let v%u = view(%s[", w->next % 10000, types[hostile_choose(w, 8)]);
    hostile_indices(w, NULL, 1 + kind % 2, 1);
    hostile_put(w, "], %s)", from.name);
    hostile_add(w, 1 + kind % 2, 1);
  } else if (kind == 3) {
    hostile_put(w, "let v%u = reshape(%s, ", w->next % 10000, from.name);
    hostile_indices(w, NULL, 2, 2);
    hostile_put(w, ")");
    hostile_add(w, 2, from.is_own);
  } else if (kind == 4 && from.rank > 1) {
    hostile_put(w, "let v%u = %s.T", w->next % 10000, from.name);
    hostile_add(w, from.rank, 0);
  } else if (from.rank) {
    hostile_put(w, "let v%u = %s[", w->next % 10000, from.name);
    unsigned left = from.rank;
    for (unsigned d = 0; d < from.rank; d++) {
      if (d) hostile_put(w, ", ");
      if (hostile_choose(w, 4) == 0 && left > 1) {
        left--;
        hostile_number(w, 2);
        continue;
      }
      if (hostile_choose(w, 4)) hostile_number(w, 2);
      hostile_put(w, ":");
      if (hostile_choose(w, 3)) hostile_number(w, 2);
      if (hostile_choose(w, 2)) {
        hostile_put(w, ":");
        hostile_number(w, 2);
      }
    }
    hostile_put(w, "]");
    hostile_add(w, left, 0);
  } else hostile_put(w, "q0 = q0 + 1");
}

static inline void hostile_block(hostile_writer *w);

static inline void hostile_storage(hostile_writer *w)
{
  static const char *const types[] = { "u8", "i64", "f32", "bool", "f32x4", "u64", "i32", "P" };
  static const char *const extents[] = { "8", "1", "16, 3", "n", "33", "blockDim.x", "" };
  int is_shared = hostile_choose(w, 2);
  unsigned extent = hostile_choose(w, is_shared && !w->is_in_range ? 7 : 3);
  hostile_put(w, "%s v%u: %s[%s]", is_shared ? "shared" : "local", w->next % 10000,
              types[hostile_choose(w, 8)], extents[extent]);
  if (hostile_choose(w, 5) == 1) hostile_put(w, " @align(64)");
  hostile_add(w, extent == 2 ? 2 : 1, 1);
}

static inline void hostile_meet(hostile_writer *w)
{
  static const char *const meetings[] = {
    "syncthreads()",
    "syncwarp()",
    "q0 = q0 + shfl_sync(0xffffffff, i64(n), i32(m))",
    "q0 = q0 + i64(shfl_up_sync(u32(n), f32(m), u32(q0)))",
    "q0 = q0 + i64(ballot_sync(u32(m), n > m))",
    "q0 = q0 + i64(match_any_sync(0xffffffff, i32(q0)))",
    "q0 = q0 + i64(syncthreads_count(q0 > n))",
    "q0 = q0 + i64(reduce_add_sync(0xffffffff, i32(m)))",
    "q0 = block_reduce(max, q0, 32)",
    "q0 = block_inclusive_scan(min, q0, 7)",
    "q0 = block_broadcast(q0, i32(n))",
    "q0 = q0 + warp_reduce(max, q0)",
    "grid_sync()",
    "let w1, w2 = block_flag_ranks(q0 > m, 16)",
    "threadfence()",
    "cluster_sync()",
  };
  if (w->is_in_range) hostile_put(w, "q0 = q0 * 3");
  else hostile_put(w, "%s", meetings[hostile_choose(w, sizeof meetings / sizeof *meetings)]);
}

/* Writes calls that exchange items of local arrays, with any indices. */
static inline void hostile_items(hostile_writer *w)
{
  static const char *const calls[] = {
    "block_load_blocked(a, %s, items)",
    "block_store_blocked(a, %s, items)",
    "block_load_striped(a, %s, items, 32)",
    "block_store_striped(a, %s, items, 5)",
    "block_load_blocked_guarded(a, %s, items, i32(m), zero(dtype(a)))",
    "block_store_striped_guarded(a, %s, items, i32(m), 64)",
    "block_blocked_to_striped(items, 8) # %s",
    "block_exclusive_scan_items(lesser, items, zero(dtype(a)), 32) # %s",
    "update_add(a, %s, zero(dtype(a)))",
  };
  static const char *const firsts[] = { "n", "i64(m)",     "-1", "i32(n)", "1099511627776",
                                        "3", "threadIdx.x" };
  if (w->is_in_range) {
    hostile_put(w, "q0 = q0 ^ 5");
    return;
  }
  hostile_put(w, "if n > 1 {");
  hostile_line(w);
  hostile_put(w, "local items: dtype(a)[%s]", hostile_choose(w, 2) ? "4" : "3");
  hostile_line(w);
  const char *call = calls[hostile_choose(w, sizeof calls / sizeof *calls)],
             *first = firsts[hostile_choose(w, 7)], *at = strstr(call, "%s");
  hostile_put(w, "%.*s%s%s", (int)(at - call), call, first, at + 2);
  hostile_line(w);
  hostile_put(w, "}");
}

static inline void hostile_store(hostile_writer *w)
{
  static const char *const atomics[] = { "atomic_add",       "atomic_max", "atomic_exch",
                                         "atomic_add_block", "stcg",       "stwt",
                                         "atomic_store" };
  const hostile_array *a = hostile_pick(w);
  unsigned kind = hostile_choose(w, 5);
  if (a->is_own && kind == 1) kind = 3; /* atomics need memory that threads share */
  if (kind == 1)
    hostile_put(w, "if dtype(%s) == i32 or dtype(%s) == u64 or dtype(%s) == f32 { %s(", a->name,
                a->name, a->name, atomics[hostile_choose(w, 7)]);
  hostile_put(w, "%s[", a->name);
  hostile_indices(w, a->name, a->rank, 3);
  hostile_put(w, kind == 1 ? "], " : kind == 2 ? "] += " : "] = ");
  hostile_put(w, "from_number(%s, i64(", a->name);
  hostile_number(w, 2);
  hostile_put(w, kind == 1 ? "))) }" : "))");
}

static inline void hostile_statement(hostile_writer *w)
{
  unsigned arrays = w->array_count, numbers = w->number_count;
  switch (hostile_choose(w, 16)) {
  case 1:
  case 2: hostile_view(w); return;
  case 3:
    hostile_put(w, "let k%u = i64(", w->number_count);
    hostile_number(w, 3);
    hostile_put(w, ")");
    w->number_count++;
    return;
  case 4: hostile_storage(w); return;
  case 5: hostile_meet(w); return;
  case 6:
    hostile_put(w, "if i64(");
    hostile_number(w, 2);
    hostile_put(w, ") < i64(");
    hostile_number(w, 2);
    hostile_put(w, ") {");
    break;
  case 7:
    hostile_put(w, "for k%u in range(", w->number_count);
    hostile_number(w, 1);
    hostile_put(w, ", ");
    hostile_number(w, 1);
    hostile_put(w, hostile_choose(w, 3) ? ") {" : ", i64(n)) {");
    w->number_count++;
    break;
  case 8:
    if (w->is_in_range || w->indent > 1) {
      hostile_put(w, "q0 = q0 - n");
      return;
    }
    hostile_put(w, "for k%u in %s(", w->number_count,
                hostile_choose(w, 2) ? "grid_range" : "block_range");
    hostile_number(w, 1);
    hostile_put(w, ") {");
    w->number_count++;
    w->is_in_range = 1;
    w->indent++;
    hostile_block(w);
    w->indent--;
    w->is_in_range = 0;
    w->array_count = arrays;
    w->number_count = numbers;
    hostile_line(w);
    hostile_put(w, "}");
    return;
  case 9:
    hostile_put(w, "q0 = q0 + to_number(ldcg(c[");
    hostile_indices(w, "c", 2, 2);
    hostile_put(w, "]))");
    return;
  case 10: hostile_items(w); return;
  case 11:
    hostile_put(w, "q0 = recur(a, i64(");
    hostile_number(w, 1);
    hostile_put(w, "), q0)");
    return;
  case 12:
    hostile_put(w, "p0.table[");
    hostile_number(w, 2);
    hostile_put(w, "] = q0");
    return;
  default: hostile_store(w); return;
  }
  w->indent++;
  hostile_block(w);
  w->indent--;
  w->array_count = arrays;
  w->number_count = numbers;
  hostile_line(w);
  hostile_put(w, "}");
}

static inline void hostile_block(hostile_writer *w)
{
  unsigned count = 1 + hostile_choose(w, 5);
  if (w->indent > 4) count = 1;
  for (unsigned i = 0; i < count; i++) {
    hostile_line(w);
    hostile_statement(w);
  }
}

/* Returns the number of bytes of the text, without the 0 byte after it. ranks receives the ranks of
 * the kernel's first three arguments, which are arrays. Three numbers follow them. */
static inline size_t make_hostile_kernel(const uint8_t *choices, size_t count, char *text,
                                         int32_t *ranks)
{
  hostile_writer w = { .choices = choices, .count = count, .text = text, .indent = 1 };
  static const struct hostile_array given[] = { { "a", 1, 0 }, { "b", 1, 0 }, { "c", 2, 0 } };
  unsigned rank = 1 + hostile_choose(&w, 2);
  for (unsigned i = 0; i < 3; i++) w.arrays[w.array_count++] = given[i];
  w.arrays[1].rank = rank;
  for (unsigned i = 0; i < 3; i++) ranks[i] = (int32_t)w.arrays[i].rank;
  hostile_put(&w, "import \"block\"\nimport \"warp\"\nimport \"update\"\n"
                  "struct P { table: i64[3]; small: u8; low: f32 }\n"
                  "func lesser(x, y) { return x < y ? x : y }\n"
                  "func abs_of(x, y) { return abs(x) + y }\n"
                  "func to_number(x) {\n"
                  "  if is_struct(dtype(x)) { return x.table[x.small %% 3] }\n"
                  "  else if is_vector(dtype(x)) { return i64(x[1]) }\n"
                  "  else if is_complex(dtype(x)) { return i64(x.real) }\n"
                  "  else { return i64(x) }\n}\n"
                  "func from_number(a, x: i64) {\n"
                  "  if is_struct(dtype(a)) { return P((x, x, 1), u8(x), f32(x)) }\n"
                  "  else if is_complex(dtype(a)) { return dtype(a)(f32(x), 0) }\n"
                  "  else if dtype(a) == bool { return x != 0 }\n"
                  "  else { return dtype(a)(x) }\n}\n"
                  "func recur(a, n: i64, q: i64) -> i64 {\n"
                  "  local t: i64[5]\n  t[n %% 5] = q\n"
                  "  if q > 100 { return t[n] }\n"
                  "  return recur(a, n - 1, q + i64(t[(n + 1) %% 5])) + t[q]\n}\n"
                  "kernel k(a, b, c, n, m, q) {\n"
                  "  var q0 = i64(q)\n  var p0 = zero(P)\n  let z = i64(q) * 0");
  hostile_block(&w);
  hostile_block(&w);
  hostile_put(&w, "\n}\n");
  return w.used;
}

#endif

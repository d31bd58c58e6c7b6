/* Chooses the launch shape of a reduction over pairs, and writes the funcs that load a thread's
 * rows of x and a block's rows of y. For rows of three elements, the source of these funcs is:
 *
 *     func pair_x(l, i, xs, x: func) @inline {
 *       for k in range(3) @unroll { xs[l, k] = x(i, k) }
 *     }
 *     func pairs_x(l, i, xs, x: func) @inline { pair_x(l, i, xs, x) }
 *     func pair_y0(first, count, ys, y: func, const T) @inline {
 *       for e in range(i32(thread_rank), count * 3, T) {
 *         ys[e // 3, e % 3] = y(first + ..., e % 3)
 *       }
 *     }
 *     func pairs_y(first, count, y0s, y0: func, const T) @inline {
 *       pair_y0(first, count, y0s, y0, T)
 *     } */
#include "algorithm/pairs.h"

/* ---- the shape of a launch ---- */

enum {
  GPU_THREADS = 128,
  GPU_ROWS = 4, /* maximum number of rows of x for each thread */
  /* maximum size, in registers, of a thread's rows of x with their sums, and maximum size of a
   * single row of x
   */
  GPU_ROW_BYTES = 224,
  GPU_X_BYTES = 96,
  /* maximum size of a row of x, its values in a pair, and its sums, if a gradient keeps them in
   * registers; a Gaussian with rows of 66 f32 takes 228 of the 255 registers */
  GPU_GRADIENT_BYTES = 800,
  /* maximum size of a row of x if only derivatives with respect to the additional arguments are
   * computed: 32 f32 and the cotangent. For longer rows, LLVM does not unroll the loops of a
   * Gaussian, and the rows would be in local memory. */
  GPU_ARGUMENT_X_BYTES = 132,
  GPU_TILE = 256, /* maximum number of rows of y in shared memory */
  GPU_TILE_BYTES = 8192,
  SHARED_TILE = 32, /* like GPU_TILE, if rows of x are in shared memory as well */
  SHARED_TILE_BYTES = 16384,
  MOST_PAIRS = 16, /* number of pairs of rows that a thread computes at a time */
  FEW_COLUMNS = 4, /* minimum number of rows of y in shared memory */
  RESERVED = 1024, /* shared memory that the driver takes for each block */
  ROUNDS = 8,      /* number of blocks of a launch for each block that fits on the GPU at a time */
  CPU_ROWS = 64,
  CPU_ROWS_OF_K = 16,    /* like CPU_ROWS, for calls that find the k smallest values */
  CPU_ROW_BYTES = 32768, /* maximum size of a thread's rows of x, which are columns in one array */
  CPU_VALUE_BYTES = 16384, /* maximum size of the combined values of a thread's rows */
  CPU_TILE = 256,
  CPU_TILE_BYTES = 16384
};

static uint32_t bytes_of(const ka_rows *rows, size_t count)
{
  uint32_t bytes = 0;
  for (size_t i = 0; i < count; i++) bytes += rows[i].bytes;
  return bytes;
}

static uint32_t halve_until(uint32_t most, uint64_t bytes, uint64_t room, uint64_t needed)
{
  while (most > 1 && (most * bytes > room || most / 2 >= needed)) most /= 2;
  return most;
}

/* Returns a row distance that is an odd multiple of 16 bytes. With this distance, eight threads
 * that each load 16 bytes of their own row access different banks. */
uint32_t ka_pair_stride(uint32_t width, uint32_t element_bytes)
{
  enum { UNIT = 16 };
  if (UNIT % element_bytes) return width;
  uint32_t units = (width * element_bytes + UNIT - 1) / UNIT;
  return (units | 1) * (UNIT / element_bytes);
}

static uint32_t stride_of(const ka_rows *rows)
{
  return ka_pair_stride(rows->width, rows->bytes / rows->width);
}

static uint64_t stride_bytes(const ka_rows *rows, size_t count, bool is_x)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < count; i++) {
    bool is_row = rows[i].operand.rank == 2;
    if (is_row) bytes += (uint64_t)stride_of(&rows[i]) * (rows[i].bytes / rows[i].width);
    else if (!is_x) bytes += rows[i].bytes;
  }
  return bytes;
}

/* Returns the shared memory that a row of x and its sums take. */
static uint64_t shared_row_bytes(const ka_pairs *p)
{
  uint64_t bytes = stride_bytes(p->x, p->x_count, true);
  for (size_t i = 0; i < p->value_count && p->gradient; i++) {
    const ka_pair_value *v = &p->values[i];
    uint32_t element = v->bytes / (v->width ? v->width : 1);
    if (v->width) bytes += (uint64_t)ka_pair_stride(v->width, element) * element;
  }
  return bytes;
}

/* Chooses a shape with rows of x in shared memory. Returns false if they do not fit. With more
 * pairs for each thread, a pair needs fewer loads; with more warps, the loads' latency is hidden
 * better. */
static bool choose_shared(const ka_pairs *p, uint64_t n, ka_pair_shape *s)
{
  static const struct {
    uint32_t threads, rows;
    bool is_half; /* two blocks fit into a multiprocessor */
  } sizes[] = { { GPU_THREADS, GPU_ROWS, true },
                { GPU_THREADS, GPU_ROWS / 2, false },
                { GPU_THREADS, 1, false },
                { GPU_THREADS / 2, 1, false },
                { KJ_WARP_THREADS, 1, false } };
  uint64_t whole = p->call->device->info.max_shared_bytes, row = shared_row_bytes(p),
           column = stride_bytes(p->y, p->y_count, false);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    uint32_t threads = sizes[i].threads, rows = p->k ? 1 : sizes[i].rows;
    bool is_small = i + 1 < sizeof sizes / sizeof *sizes && threads * (rows / 2.0) >= (double)p->m;
    uint64_t room = sizes[i].is_half ? (whole + RESERVED) / 2 - RESERVED : whole,
             own = threads * rows * row;
    if (is_small || own + column * FEW_COLUMNS > room) continue;
    uint64_t half = (whole + RESERVED) / 2 - RESERVED;
    if (own + column * MOST_PAIRS <= half) room = half;
    uint64_t tile_room = ka_least(room - own, SHARED_TILE_BYTES);
    *s = (ka_pair_shape){ .threads = threads, .rows = rows, .is_shared = true };
    s->tile = halve_until(SHARED_TILE, column, tile_room, n);
    s->columns = (uint32_t)ka_least(MOST_PAIRS / rows, s->tile);
    s->groups = ka_divide_up(p->m, (uint64_t)threads * rows);
    uint64_t at_once = (whole + RESERVED) / (own + s->tile * column + RESERVED),
             wanted = ROUNDS * at_once * ka_core_count(p->call);
    s->parts = ka_most(ka_least(wanted / s->groups, ka_divide_up(n, s->tile)), 1);
    return true;
  }
  return false;
}

/* Returns whether a gradient by rows keeps a row of x and its sums in registers. Each pair loads
 * and stores all sums of its row. If the sums are in shared memory, these accesses take longer than
 * the computation; registers avoid them, but hold only one row for each thread. The derivative
 * needs the values of the forward pass, such as the rows' differences, a second time. If the row is
 * in shared memory, the kernel reads the row and computes these values twice; for a Gaussian this
 * takes four instructions for each element instead of three. */
static bool is_gradient_in_registers(const ka_pairs *p, uint32_t x_bytes)
{
  bool has_rows = false, is_by_rows = false;
  for (size_t i = 0; i < p->value_count && p->gradient; i++) {
    has_rows |= p->values[i].width != 0;
    is_by_rows |= p->values[i].width && p->gradient->by[i] <= p->gradient->paired;
  }
  return has_rows && (is_by_rows || x_bytes <= GPU_ARGUMENT_X_BYTES) &&
         2 * (uint64_t)x_bytes + p->bytes <= GPU_GRADIENT_BYTES;
}

ka_pair_shape ka_choose_pair_shape(const ka_pairs *p, uint64_t n)
{
  bool is_cpu = ka_is_cpu(p->call);
  ka_pair_shape s = { .threads = is_cpu ? 1 : GPU_THREADS, .columns = 1 };
  uint64_t cores = ka_core_count(p->call);
  uint32_t x_bytes = bytes_of(p->x, p->x_count), y_bytes = bytes_of(p->y, p->y_count);
  bool is_long = x_bytes > GPU_X_BYTES && !is_gradient_in_registers(p, x_bytes);
  if (!is_cpu && is_long && choose_shared(p, n, &s)) return s;
  if (is_cpu) {
    s.rows = halve_until(p->k ? CPU_ROWS_OF_K : CPU_ROWS, x_bytes, CPU_ROW_BYTES, p->m);
    while (s.rows > 1 && s.rows * p->bytes > CPU_VALUE_BYTES) s.rows /= 2;
    s.tile = halve_until(CPU_TILE, y_bytes, CPU_TILE_BYTES, n);
  } else {
    while (s.threads > KJ_WARP_THREADS && s.threads / 2 >= p->m) s.threads /= 2;
    s.rows = p->k ? 1
                  : halve_until(GPU_ROWS, x_bytes + p->bytes, GPU_ROW_BYTES,
                                ka_divide_up(p->m, s.threads));
    s.tile = halve_until(GPU_TILE, y_bytes, GPU_TILE_BYTES, n);
  }
  uint64_t wanted = (is_cpu ? KA_CPU_PAIR_BLOCKS : KA_GPU_PAIR_BLOCKS) * cores;
  s.groups = ka_divide_up(p->m, (uint64_t)s.threads * s.rows);
  s.parts = ka_most(ka_least(ka_divide_up(wanted, s.groups), ka_divide_up(n, s.tile)), 1);
  return s;
}

/* ---- arguments of the func ---- */

size_t ka_list_pair_rows(const ka_pairs *p, const ka_rows *rows[KA_MOST_ROWS])
{
  bool is_exchanged = p->gradient && p->gradient->is_exchanged;
  size_t paired = p->gradient ? p->gradient->paired : p->y_count;
  rows[0] = is_exchanged ? &p->y[0] : &p->x[0];
  for (size_t i = 0; i < paired; i++) rows[1 + i] = is_exchanged ? &p->x[i] : &p->y[i];
  return 1 + paired;
}

const char *ka_use_pair_function(const ka_pairs *p, ka_kernel *kernel)
{
  const ka_rows *rows[KA_MOST_ROWS];
  return ka_use_function(kernel, p->function.function,
                         2 + ka_list_pair_rows(p, rows) + p->function.array_count,
                         "a row of x, one of y and their places, arrays and values");
}

static bool is_of_x(const ka_pairs *p, const ka_rows *rows)
{
  return rows >= p->x && rows < p->x + p->x_count;
}

bool ka_is_column(const ka_pairs *p, const ka_rows *rows)
{
  return is_of_x(p, rows) && rows->operand.rank == 2 && ka_is_cpu(p->call);
}

static bool is_shared_row(const ka_pair_shape *shape, const ka_rows *rows)
{
  return shape->is_shared && rows->operand.rank == 2;
}

/* Returns the index of a thread's l-th row of x in the kernel's array. */
static const char *index_of_x(const ka_pairs *p, const ka_pair_shape *shape, const ka_rows *rows)
{
  if (!is_shared_row(shape, rows)) return "l";
  return kj_format(&p->call->arena, "l * %u + i32(thread_rank)", shape->threads);
}

const char *ka_pair_row(const ka_pairs *p, const ka_pair_shape *shape, const ka_rows *rows)
{
  kj_arena *arena = &p->call->arena;
  const char *name = rows->operand.name;
  if (is_shared_row(shape, rows))
    return kj_format(arena, "%ss[%s, :%u]", name,
                     is_of_x(p, rows) ? index_of_x(p, shape, rows) : "j", rows->width);
  if (!ka_is_column(p, rows))
    return kj_format(arena, "%ss[%s]", name, is_of_x(p, rows) ? "l" : "j");
  return kj_format(arena, p->gradient ? "%s_row" : "%ss[:, l]", name);
}

static const char *list_arguments(const ka_pairs *p, const ka_pair_shape *shape, const char *row)
{
  kj_arena *arena = &p->call->arena;
  const ka_rows *rows[KA_MOST_ROWS];
  size_t count = ka_list_pair_rows(p, rows);
  const char *list = "", *of_x = *row ? "i64(i) + i64(row)" : "i64(i)", *of_y = "i64(at)";
  for (size_t i = 0; i < count; i++)
    list = kj_format(arena, "%s%s, ", list, ka_pair_row(p, shape, rows[i]));
  bool is_exchanged = p->gradient && p->gradient->is_exchanged;
  return kj_format(arena, "%s%s, %s", list, is_exchanged ? of_y : of_x, is_exchanged ? of_x : of_y);
}

/* ---- rows ---- */

const char *ka_rows_type(ka_kernel *kernel, const ka_rows *rows, uint32_t count, bool is_transposed)
{
  kj_arena *arena = &kernel->call->arena;
  const char *type = ka_use_type(kernel, rows->computed);
  if (rows->operand.rank == 1) return kj_format(arena, "%s[%u]", type, count);
  return is_transposed ? kj_format(arena, "%s[%u, %u]", type, rows->width, count)
                       : kj_format(arena, "%s[%u, %u]", type, count, rows->width);
}

/* Returns the type of an array of rows in shared memory: "f32[256, 104]". */
static const char *shared_type(ka_kernel *kernel, const ka_rows *rows, uint32_t count)
{
  return kj_format(&kernel->call->arena, "%s[%u, %u]", ka_use_type(kernel, rows->computed), count,
                   stride_of(rows));
}

static void write_x(const ka_pairs *p, ka_kernel *kernel, const ka_pair_shape *shape,
                    const ka_rows *x)
{
  const char *name = x->operand.name;
  if (x->operand.rank == 1)
    kj_append_format(kernel->funcs,
                     "func pair_%s(l, i, xs, x: func) @inline { xs[l] = x(i, 0i32) }\n", name);
  else
    kj_append_format(kernel->funcs,
                     "func pair_%s(l, i, xs, x: func) @inline {\n"
                     "  for k in range(%ui32)%s { xs[%s%s] = x(i, k) }\n}\n",
                     name, x->width, x->width <= KA_MOST_UNROLLED ? " @unroll" : "",
                     ka_is_cpu(p->call) ? "k, l" : index_of_x(p, shape, x),
                     ka_is_cpu(p->call) ? "" : ", k");
}

static void write_y(ka_kernel *kernel, const ka_rows *y)
{
  const char *name = y->operand.name;
  uint32_t extent = y->width;
  kj_append_format(kernel->funcs,
                   "func pair_%s(first, count, ys, y: func, const T) @inline {\n"
                   "  for e in range(T > 1 ? i32(thread_rank) : 0i32, count * %u, T) {\n",
                   name, extent);
  if (y->operand.rank == 1)
    kj_append_text(kernel->funcs, "    ys[e] = y(first + dtype(first)(e), 0i32)\n");
  else
    kj_append_format(kernel->funcs,
                     "    ys[e // %u, e %% %u] = y(first + dtype(first)(e // %u), e %% %u)\n",
                     extent, extent, extent, extent);
  kj_append_text(kernel->funcs, "  }\n}\n");
}

/* Returns the type that loaded elements are converted to; KJIT_ANY for no conversion. */
static kjit_type wide_type(const ka_rows *rows)
{
  return rows->computed == rows->operand.element ? KJIT_ANY : rows->computed;
}

/* Source text for one side of the pairs (x or y): its arrays, and a func that reads the rows of all
 * its operands. */
typedef struct side {
  const char *locals, *names, *take;
} side;

static side write_side(const ka_pairs *p, ka_kernel *kernel, const ka_pair_shape *shape, bool is_x)
{
  kj_arena *arena = &p->call->arena;
  bool is_cpu = ka_is_cpu(p->call);
  const ka_rows *rows = is_x ? p->x : p->y;
  size_t count = is_x ? p->x_count : p->y_count;
  const char *parameters = "", *bound = "", *takes = "", *head = is_x ? "l, i" : "first, count",
             *end = is_x ? "" : ", T";
  side s = { "", "", "" };
  for (size_t k = 0; k < count; k++) {
    const char *name = rows[k].operand.name,
               *read = ka_use_input(kernel, &rows[k].operand, wide_type(&rows[k]));
    if (is_x) write_x(p, kernel, shape, &rows[k]);
    else write_y(kernel, &rows[k]);
    bool is_row = is_shared_row(shape, &rows[k]), is_shared = !is_cpu && (!is_x || is_row);
    const char *type =
      is_row ? shared_type(kernel, &rows[k], is_x ? shape->rows * shape->threads : shape->tile)
             : ka_rows_type(kernel, &rows[k], is_x ? shape->rows : shape->tile, is_x && is_cpu);
    s.locals = kj_format(arena, "%s  %s %ss: %s%s\n", s.locals, is_shared ? "shared" : "local",
                         name, type, is_row ? " @align(16)" : "");
    s.names = kj_format(arena, "%s, %ss", s.names, name);
    parameters = kj_format(arena, "%s, %ss, %s: func", parameters, name, name);
    bound = kj_format(arena, "%s, %ss, %s", bound, name, read);
    takes = kj_format(arena, "%s  pair_%s(%s, %ss, %s%s)\n", takes, name, head, name, name, end);
  }
  const char *all = is_x ? "pairs_x" : "pairs_y";
  kj_append_format(kernel->funcs, "func %s(%s%s%s) @inline {\n%s}\n", all, head, parameters,
                   is_x ? "" : ", const T", takes);
  s.take = is_x ? kj_format(arena, "bind_back(%s%s)", all, bound)
                : kj_format(arena, "bind_back(%s%s, %u)", all, bound, shape->threads);
  return s;
}

ka_rows_text ka_write_pair_rows(const ka_pairs *p, ka_kernel *kernel, const ka_pair_shape *shape)
{
  kj_arena *arena = &p->call->arena;
  side x = write_side(p, kernel, shape, true), y = write_side(p, kernel, shape, false);
  ka_rows_text text = { .locals = kj_format(arena, "%s%s", x.locals, y.locals),
                        .names = kj_format(arena, "%s%s", x.names, y.names),
                        .take_x = x.take,
                        .take_y = y.take,
                        .row = "" };
  if (p->piece && p->piece->is_share)
    text.row = kj_format(arena, ", %s", ka_use_count(kernel, p->piece->row));
  text.arguments = list_arguments(p, shape, text.row);
  return text;
}

/* Result rules of the built-ins on memory: hinted accesses, pointers, asynchronous copies. */
#include <string.h>

#include "typing/rules.h"

/* Result rules of the built-ins that access elements in a way of their own, and of those about time
 * and control. */

static kj_texpr *apply_place(kj_scope *s, const kj_operands *o, kj_texprs values, kjit_type type)
{
  kj_operands typed = *o;
  typed.values = values;
  kj_texpr *expr = kj_new_builtin(s, &typed, type);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  return expr;
}

kj_texpr *kj_rule_element_load(kj_scope *s, const kj_operands *o)
{
  return apply_place(s, o, (kj_texprs){ 0 }, o->place.type);
}

kj_texpr *kj_rule_element_prefetch(kj_scope *s, const kj_operands *o)
{
  return apply_place(s, o, (kj_texprs){ 0 }, KJIT_VOID);
}

kj_texpr *kj_rule_element_store(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 };
  kj_texpr *value = o->values.items[0];
  KJ_PUSH(s->arena, &values,
          kj_convert_stored(s, value, o->place.type, "the element", value->location));
  return apply_place(s, o, values, KJIT_VOID);
}

kj_texpr *kj_rule_clock(kj_scope *s, const kj_operands *o)
{
  return kj_new_builtin(s, o, KJIT_I64);
}

kj_texpr *kj_rule_nanosleep(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[0];
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs an integer, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  KJ_PUSH(s->arena, &typed.values, kj_convert(s, value, KJIT_U32, value->location));
  return kj_new_builtin(s, &typed, KJIT_VOID);
}

kj_texpr *kj_rule_assume(kj_scope *s, const kj_operands *o)
{
  kj_operands typed = *o;
  typed.values = (kj_texprs){ 0 };
  KJ_PUSH(s->arena, &typed.values, kj_make_condition(s, o->values.items[0]));
  return kj_new_builtin(s, &typed, KJIT_VOID);
}

/* Result rules of the built-ins that make and change pointers. */

static kjit_type pointer_to(kj_scope *s, kjit_type element, bool read_only)
{
  kjit_type type = kj_intern_pointer(s->c->types, element, read_only);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  return type;
}

kj_texpr *kj_rule_pointer(kj_scope *s, const kj_operands *o)
{
  const kj_type_info *info = kj_type(s->c->types, o->place.array->type);
  kj_texpr *address =
    kj_new_texpr(s->c, KJ_T_ADDRESS,
                 pointer_to(s, info->element, info->read_only || info->space == KJ_SPACE_CONST),
                 o->location);
  uint32_t natural = kj_alignment(s->c->types, info->element);
  if (info->alignment_bytes && info->alignment_bytes < natural)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "a pointer to this field would not be aligned: its struct is packed");
  address->x = kj_make_concrete(s, o->place.array);
  address->args = o->place.indices;
  return address;
}

/* ---- view(f32[n, m], p) ---- */

static kj_texpr *make_extent(kj_scope *s, kj_texpr *value)
{
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "an extent of `view` is an integer, got %s",
            kj_type_text(s->c, value->type));
  if (kj_is_constant(value) && value->integer < 0)
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "an extent of `view` is at least 0, got %s",
            kj_integer_text(s->arena, value->integer));
  return kj_keep_value(s, kj_convert(s, value, KJIT_INDEX, value->location));
}

static bool are_known(const kj_texprs *extents)
{
  for (size_t i = 0; i < extents->count; i++)
    if (!kj_is_constant(extents->items[i]) || extents->items[i]->integer == 0) return false;
  return true;
}

kj_texpr *kj_rule_view(kj_scope *s, const kj_operands *o)
{
  kj_texpr *pointer = o->values.items[0];
  if (!kj_is_pointer(s->c, pointer->type))
    kj_fail(s->c, pointer->location, KJIT_ERROR_TYPE,
            "`view` needs a pointer, got %s: a part of an array is `a[first:stop]`, other extents "
            "`reshape(a, n, m)`",
            kj_type_text(s->c, pointer->type));
  const kj_type_info *to = kj_type(s->c->types, pointer->type);
  if (to->element != o->type_argument) {
    const char *wanted = kj_type_text(s->c, o->type_argument);
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`view` of %s through a %s: `bitcast(%s*, p)` is a pointer to the same bytes", wanted,
            kj_type_text(s->c, pointer->type), wanted);
  }
  kj_type_info array = { .element = to->element,
                         .rank = (uint32_t)o->extents.count,
                         .layout = KJIT_LAYOUT_C,
                         .space = KJ_SPACE_GENERIC,
                         .read_only = to->read_only };
  array.is_static = are_known(&o->extents);
  kj_texprs extents = { 0 };
  for (size_t i = 0; i < o->extents.count; i++) {
    KJ_PUSH(s->arena, &extents, make_extent(s, o->extents.items[i]));
    if (array.is_static) array.extents[i] = (int64_t)extents.items[i]->integer;
  }
  kjit_type type = kj_intern_array(s->c->types, &array);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  kj_texpr *pointed = kj_new_texpr(s->c, KJ_T_POINTED, type, o->location);
  pointed->x = kj_keep_value(s, pointer);
  pointed->args = extents;
  return pointed;
}

/* ---- bitcast(f32*, address), bitcast(u64, p) ---- */

static kj_texpr *new_convert(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location)
{
  kj_texpr *convert = kj_new_texpr(s->c, KJ_T_CONVERT, type, location);
  convert->x = value;
  return value->type == type ? value : convert;
}

kj_texpr *kj_bitcast_pointer(kj_scope *s, const kj_operands *o)
{
  kj_texpr *value = o->values.items[0];
  kjit_type type = o->type_argument;
  bool from_pointer = kj_is_pointer(s->c, value->type), to_pointer = kj_is_pointer(s->c, type);
  if (!from_pointer && !to_pointer) return NULL;
  bool drops_const = from_pointer && to_pointer && kj_type(s->c->types, value->type)->read_only &&
                     !kj_type(s->c->types, type)->read_only;
  if (drops_const)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE, "`bitcast` keeps `const`: write `const %s`",
            kj_type_text(s->c, type));
  if (from_pointer && to_pointer) return new_convert(s, value, type, o->location);
  kjit_type number = from_pointer ? type : value->type;
  if (number != KJIT_U64 && number != KJIT_I64 && number != KJ_WEAK_INT)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "the address in a pointer is a u64 or an i64, not %s", kj_type_text(s->c, number));
  if (from_pointer)
    return kj_convert(s, new_convert(s, value, KJIT_U64, o->location), type, o->location);
  return new_convert(s, kj_convert(s, value, KJIT_U64, o->location), type, o->location);
}

/* Result rules of asynchronous copies. */

enum { MOST_GROUPS = 63 };

static kj_texpr *apply(kj_scope *s, const kj_operands *o, kj_texprs values, kjit_type type)
{
  kj_operands typed = *o;
  typed.values = values;
  return kj_new_builtin(s, &typed, type);
}

static kj_space space_of(kj_scope *s, const kj_texpr *array)
{
  return kj_type(s->c->types, array->type)->space;
}

/* The source: an element as it would be loaded, of the destination's type. */
static kj_texpr *take_source(kj_scope *s, const kj_operands *o)
{
  kj_texpr *source = o->values.items[0];
  if (source->kind != KJ_T_LOAD)
    kj_fail(s->c, source->location, KJIT_ERROR_TYPE,
            "`%s` copies from an element of an array: `%s(tile[i], x[j], n)`", o->builtin->name,
            o->builtin->name);
  if (source->type != o->place.type)
    kj_fail(s->c, source->location, KJIT_ERROR_TYPE,
            "`%s` copies elements of one type: the destination has %s, the source %s",
            o->builtin->name, kj_type_text(s->c, o->place.type), kj_type_text(s->c, source->type));
  return source;
}

static kj_texpr *apply_copy(kj_scope *s, const kj_operands *o, kj_texpr *source, kj_texprs values)
{
  kj_texpr *expr = apply(s, o, values, KJIT_VOID);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  expr->y = source;
  return expr;
}

kj_texpr *kj_rule_cp_async(kj_scope *s, const kj_operands *o)
{
  kj_texpr *source = take_source(s, o), *count = o->values.items[1];
  uint32_t size = kj_type(s->c->types, o->place.type)->size_bytes;
  if (space_of(s, o->place.array) != KJ_SPACE_SHARED || space_of(s, source->x) != KJ_SPACE_GLOBAL)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` copies from an array argument to a shared array", o->builtin->name);
  bool is_known = kj_is_constant(count) && kj_is_integer(s->c, count->type);
  __int128 bytes = is_known ? count->integer * size : 0;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    kj_fail(
      s->c, count->location, KJIT_ERROR_TYPE,
      "`%s` copies 4, 8 or 16 bytes, a number of elements known at compile time; %s has %u bytes",
      o->builtin->name, kj_type_text(s->c, o->place.type), size);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, kj_convert(s, count, KJIT_U32, count->location));
  if (o->values.count == 3)
    KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[2], KJIT_I64));
  return apply_copy(s, o, source, values);
}

kj_texpr *kj_rule_copy_wait(kj_scope *s, const kj_operands *o)
{
  kj_texpr *count =
    o->values.count ? o->values.items[0] : kj_new_integer(s, KJ_WEAK_INT, 0, o->location);
  if (!kj_is_constant(count) || !kj_is_integer(s->c, count->type) || count->integer < 0 ||
      count->integer > MOST_GROUPS)
    kj_fail(s->c, count->location, KJIT_ERROR_TYPE,
            "`%s` takes a number of groups known at compile time, 0 to %d", o->builtin->name,
            MOST_GROUPS);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, kj_convert(s, count, KJIT_U32, count->location));
  return apply(s, o, values, KJIT_VOID);
}

/* Which way: into shared memory a barrier counts the bytes, out of it the thread's bulk group does.
 */
kj_texpr *kj_rule_cp_async_bulk(kj_scope *s, const kj_operands *o)
{
  kj_texpr *source = take_source(s, o);
  kj_space to = space_of(s, o->place.array), from = space_of(s, source->x);
  bool is_in = to == KJ_SPACE_SHARED && from == KJ_SPACE_GLOBAL,
       is_out = to == KJ_SPACE_GLOBAL && from == KJ_SPACE_SHARED;
  bool is_across = to == KJ_SPACE_GENERIC && from == KJ_SPACE_SHARED,
       has_barrier = o->values.count == 3;
  if (!is_in && !is_out && !is_across)
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` copies from an array argument to a shared array, back, or from a shared array to "
            "that of another block (map_shared_rank)",
            o->builtin->name);
  if (has_barrier == is_out)
    kj_fail(
      s->c, o->location, KJIT_ERROR_TYPE,
      is_out ? "`%s` to global memory takes no barrier: cp_async_bulk_commit and cp_async_bulk_wait"
             : "`%s` to shared memory takes an mbarrier that counts its bytes as the last argument",
      o->builtin->name);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[1], KJIT_I64));
  if (has_barrier) {
    kj_texpr *barrier = o->values.items[2];
    if (barrier->type != KJIT_U64 && barrier->type != KJIT_I64)
      kj_fail(s->c, barrier->location, KJIT_ERROR_TYPE,
              "the barrier is a u64 in shared memory, got %s", kj_type_text(s->c, barrier->type));
    if (barrier->kind == KJ_T_LOAD && kj_is_other_block(s, barrier->x) != is_across)
      kj_fail(s->c, barrier->location, KJIT_ERROR_TYPE,
              "the barrier lies in the block that the elements are copied to");
    KJ_PUSH(s->arena, &values, kj_take_shared_address(s, o->builtin->name, barrier));
  }
  return apply_copy(s, o, source, values);
}

/* ---- tensor copies ---- */

static void check_tile(kj_scope *s, const kj_operands *o, const kj_texpr *tile,
                       const kj_texpr *array, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, tile->type),
                     *whole = kj_type(s->c->types, array->type);
  enum { MOST_EXTENT = 256, UNIT = 16 };
  if (!kj_is_array(s->c, tile->type) || info->space != KJ_SPACE_SHARED || !info->is_static)
    kj_fail(s->c, tile->location, KJIT_ERROR_TYPE,
            "`%s` needs a shared array with extents known at compile time as the tile, got %s",
            o->builtin->name, kj_type_text(s->c, tile->type));
  if (whole->space != KJ_SPACE_GLOBAL || whole->layout != KJIT_LAYOUT_C ||
      whole->rank > KJ_MAP_RANK)
    kj_fail(
      s->c, location, KJIT_ERROR_TYPE,
      "`%s` needs an array argument of layout C with at most %d dimensions, `f32[:, ::1]`; got %s",
      o->builtin->name, KJ_MAP_RANK, kj_type_text(s->c, array->type));
  if (info->element != whole->element || info->rank != whole->rank)
    kj_fail(
      s->c, tile->location, KJIT_ERROR_TYPE,
      "the tile of `%s` has the array's element type and number of dimensions: %s does not fit %s",
      o->builtin->name, kj_type_text(s->c, tile->type), kj_type_text(s->c, array->type));
  for (uint32_t d = 0; d < info->rank; d++)
    if (info->extents[d] > MOST_EXTENT)
      kj_fail(s->c, tile->location, KJIT_ERROR_TYPE, "an extent of a tile is at most %d, got %lld",
              MOST_EXTENT, (long long)info->extents[d]);
  uint64_t row =
    (uint64_t)info->extents[info->rank - 1] * kj_type(s->c->types, info->element)->size_bytes;
  if (row % UNIT)
    kj_fail(s->c, tile->location, KJIT_ERROR_TYPE,
            "the rows of a tile are a multiple of %d bytes, these have %llu", UNIT,
            (unsigned long long)row);
  if (!kj_is_scalar(info->element) || info->element == KJIT_BOOL ||
      kj_class_of(s->c, info->element) == KJ_CLASS_COMPLEX)
    kj_fail(s->c, tile->location, KJIT_ERROR_TYPE, "`%s` copies numbers, got elements of %s",
            o->builtin->name, kj_type_text(s->c, info->element));
}

static kj_texpr *take_swizzle(kj_scope *s, const kj_operands *o, size_t index, const kj_texpr *tile)
{
  const kj_type_info *info = kj_type(s->c->types, tile->type);
  kj_texpr *swizzle = index < o->values.count ? o->values.items[index]
                                              : kj_new_integer(s, KJ_WEAK_INT, 0, o->location);
  bool is_known = kj_is_constant(swizzle) && kj_is_integer(s->c, swizzle->type);
  if (!is_known || (swizzle->integer != 0 && swizzle->integer != 32 && swizzle->integer != 64 &&
                    swizzle->integer != 128))
    kj_fail(s->c, swizzle->location, KJIT_ERROR_TYPE,
            "the swizzle is 0, 32, 64 or 128 bytes, known at compile time");
  uint64_t row =
    (uint64_t)info->extents[info->rank - 1] * kj_type(s->c->types, info->element)->size_bytes;
  if (swizzle->integer && (__int128)row != swizzle->integer)
    kj_fail(s->c, swizzle->location, KJIT_ERROR_TYPE,
            "a swizzle of %s bytes needs rows of that size; those of the tile have %llu bytes",
            kj_integer_text(s->arena, swizzle->integer), (unsigned long long)row);
  return kj_convert(s, swizzle, KJIT_U32, swizzle->location);
}

kj_texpr *kj_rule_cp_async_tensor(kj_scope *s, const kj_operands *o)
{
  kj_texpr *source = o->values.items[0], *barrier = o->values.items[1], *tile = o->place.array;
  if (source->kind != KJ_T_LOAD)
    kj_fail(
      s->c, source->location, KJIT_ERROR_TYPE,
      "`%s` copies from where an element of an array argument lies: `%s(tile, x[i, j], barrier)`",
      o->builtin->name, o->builtin->name);
  check_tile(s, o, tile, source->x, source->location);
  if (barrier->type != KJIT_U64 && barrier->type != KJIT_I64)
    kj_fail(s->c, barrier->location, KJIT_ERROR_TYPE,
            "the barrier is a u64 in shared memory, got %s", kj_type_text(s->c, barrier->type));
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, take_swizzle(s, o, 2, tile));
  KJ_PUSH(s->arena, &values, kj_take_shared_address(s, o->builtin->name, barrier));
  kj_texpr *expr = apply(s, o, values, KJIT_VOID);
  expr->x = tile;
  expr->y = source;
  return expr;
}

kj_texpr *kj_rule_cp_async_tensor_store(kj_scope *s, const kj_operands *o)
{
  kj_texpr *tile = o->values.items[0];
  check_tile(s, o, tile, o->place.array, o->place.location);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, take_swizzle(s, o, 1, tile));
  kj_texpr *expr = apply(s, o, values, KJIT_VOID);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  expr->y = tile;
  return expr;
}

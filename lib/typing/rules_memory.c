/* Typing rules of built-ins that access memory: accesses with cache hints, pointers, asynchronous
 * copies. */
#include <string.h>

#include "typing/rules.h"

/* ---- accesses with special instructions, time and control ---- */

static kt_expr *apply_place(kt_scope *s, const kt_operands *o, kt_exprs values, kjit_type type)
{
  kt_operands typed = *o;
  typed.values = values;
  kt_expr *expr = kt_new_builtin(s, &typed, type);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  return expr;
}

kt_expr *kt_rule_element_load(kt_scope *s, const kt_operands *o)
{
  return apply_place(s, o, (kt_exprs){ 0 }, o->place.type);
}

kt_expr *kt_rule_element_prefetch(kt_scope *s, const kt_operands *o)
{
  return apply_place(s, o, (kt_exprs){ 0 }, KJIT_VOID);
}

kt_expr *kt_rule_element_store(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  kt_expr *value = o->values.items[0];
  KJ_PUSH(s->arena, &values,
          kt_convert_stored(s, value, o->place.type, "the element", value->location));
  return apply_place(s, o, values, KJIT_VOID);
}

kt_expr *kt_rule_clock(kt_scope *s, const kt_operands *o) { return kt_new_builtin(s, o, KJIT_I64); }

kt_expr *kt_rule_nanosleep(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = o->values.items[0];
  if (!kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type, "`%s` needs an integer, got %s",
                   o->builtin->name, kt_type_text(s->c, value->type));
  kt_operands typed = *o;
  typed.values = (kt_exprs){ 0 };
  KJ_PUSH(s->arena, &typed.values, kt_convert(s, value, KJIT_U32, value->location));
  return kt_new_builtin(s, &typed, KJIT_VOID);
}

kt_expr *kt_rule_assume(kt_scope *s, const kt_operands *o)
{
  kt_operands typed = *o;
  typed.values = (kt_exprs){ 0 };
  KJ_PUSH(s->arena, &typed.values, kt_make_condition(s, o->values.items[0]));
  return kt_new_builtin(s, &typed, KJIT_VOID);
}

/* ---- pointers ---- */

kt_expr *kt_rule_pointer(kt_scope *s, const kt_operands *o)
{
  const ki_type_info *info = ki_type(s->c->types, o->place.array->type);
  kt_expr *address =
    kt_new_texpr(s->c, KJ_T_ADDRESS,
                 kt_pointer_type(s, info->element, info->read_only || info->space == KJ_SPACE_CONST,
                                 o->location),
                 o->location);
  uint32_t natural = ki_alignment(s->c->types, info->element);
  bool is_unaligned = info->alignment_bytes && info->alignment_bytes < natural;
  bool is_only_address = s->address_call && s->address_call == o->call;
  if (is_unaligned && !is_only_address)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "a pointer to this field would not be aligned, because its struct is packed");
  address->x = kt_make_concrete(s, o->place.array);
  address->args = o->place.indices;
  return address;
}

kt_expr *kt_rule_is_aligned(kt_scope *s, const kt_operands *o)
{
  kt_expr *pointer = o->values.items[0], *alignment = o->values.items[1];
  if (!kt_is_pointer(s->c, pointer->type))
    kt_fail(
      s->c, pointer->location, KJIT_ERROR_TYPE,
      "`is_aligned` needs a pointer, got %s; for an element write `is_aligned(pointer(a[i]), 16)`",
      kt_type_text(s->c, pointer->type));
  bool is_known = kt_is_constant(alignment) && kt_is_integer(s->c, alignment->type);
  __int128 bytes = is_known ? alignment->integer : 0;
  if (bytes < 1 || bytes > INT32_MAX || (bytes & (bytes - 1)) != 0)
    kt_fail(
      s->c, alignment->location, KJIT_ERROR_TYPE,
      "an alignment must be a power of two from 1 to 1073741824 bytes and known at compile time");
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, pointer);
  KJ_PUSH(s->arena, &values, kt_convert(s, alignment, KJIT_U64, alignment->location));
  return kt_new_builtin_of(s, o, values, KJIT_BOOL);
}

/* ---- view(f32[n, m], p), view(f32[n, m], a) ---- */

static kt_expr *make_extent(kt_scope *s, kt_expr *value)
{
  if (!kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type,
                   "an extent of `view` must be an integer, got %s",
                   kt_type_text(s->c, value->type));
  if (kt_is_constant(value) && value->integer < 0)
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "an extent of `view` must be at least 0, got %s",
            kt_integer_text(s->arena, value->integer));
  if (kt_is_constant(value) && !ki_integer_fits(KJIT_INDEX, value->integer))
    kt_fail(s->c, value->location, KJIT_ERROR_TYPE,
            "an extent of `view` must fit in an i64, got %s",
            kt_integer_text(s->arena, value->integer));
  return kt_keep_value(s, kt_convert_to_index(s, value, value->location));
}

static bool are_known(const kt_exprs *extents)
{
  for (size_t i = 0; i < extents->count; i++)
    if (!kt_is_constant(extents->items[i]) || extents->items[i]->integer == 0) return false;
  return true;
}

/* Returns an array type with the extents of the type argument, and stores their values in *extents.
 * The array is row-major unless strides are given. */
static kjit_type type_of_extents(kt_scope *s, const kt_operands *o, ki_type_info array,
                                 bool has_strides, kt_exprs *extents)
{
  array.class_ = KJ_CLASS_ARRAY;
  array.rank = (uint32_t)o->extents.count;
  array.layout = has_strides ? KJIT_LAYOUT_STRIDED : KJIT_LAYOUT_C;
  array.is_static = !has_strides && are_known(&o->extents);
  for (size_t i = 0; i < o->extents.count; i++) {
    KJ_PUSH(s->arena, extents, make_extent(s, o->extents.items[i]));
    if (array.is_static) array.extents[i] = (int64_t)extents->items[i]->integer;
  }
  return kt_intern_array(s, &array);
}

static void check_viewed(kt_scope *s, const kt_operands *o, const kt_expr *array)
{
  const ki_type_info *info = ki_type(s->c->types, array->type);
  const char *given = kt_type_text(s->c, array->type),
             *element = kt_type_text(s->c, o->type_argument);
  if (info->space != KJ_SPACE_SHARED && info->space != KJ_SPACE_LOCAL)
    kt_fail(s->c, array->location, KJIT_ERROR_TYPE,
            "`view` needs a shared or local array or a pointer, got %s; for the memory of another "
            "array write `view(%s[n], bitcast(%s%s*, pointer(a[0])))`",
            given, element, info->read_only ? "const " : "", element);
  if (!info->is_static && info->layout != KJIT_LAYOUT_C)
    kt_fail(s->c, array->location, KJIT_ERROR_TYPE,
            "`view` needs an array with contiguous elements in row-major order (layout C), got %s",
            given);
}

/* Checks that the view fits into its array. If the array size is unknown, the view must fit into a
 * block's shared memory or a thread's local memory. */
static void check_room(kt_scope *s, kt_expr *view)
{
  const ki_type_info *from = ki_type(s->c->types, view->x->type),
                     *to = ki_type(s->c->types, view->type);
  if (!to->is_static) return;
  bool is_shared = from->space == KJ_SPACE_SHARED;
  __int128 have = is_shared ? kt_most_shared_bytes(&s->c->request->target) : INT32_MAX,
           need = ki_type(s->c->types, to->element)->size_bytes;
  if (from->is_static)
    have = (__int128)ki_element_count(from) * ki_type(s->c->types, from->element)->size_bytes;
  for (uint32_t d = 0; d < to->rank && need <= (__int128)1 << 63; d++) need *= to->extents[d];
  if (need <= have) return;
  kt_fail(s->c, view->location, KJIT_ERROR_TYPE, "the view needs %s bytes, but %s has %s%s",
          kt_integer_text(s->arena, need),
          from->is_static ? kt_type_text(s->c, view->x->type)
                          : (is_shared ? "a block" : "a local array"),
          from->is_static ? "" : "at most ", kt_integer_text(s->arena, have));
}

/* Checks the alignment of the view's start if it is known. If it is unknown, the alignment is
 * checked at run time. */
static void check_start(kt_scope *s, kt_expr *view)
{
  const ki_type_info *from = ki_type(s->c->types, view->x->type);
  kjit_type element = ki_type(s->c->types, view->type)->element;
  uint32_t needed = ki_alignment(s->c->types, element), start = kt_find_start(s, view->x),
           of_elements = from->alignment_bytes ? from->alignment_bytes
                                               : ki_alignment(s->c->types, from->element);
  if (needed <= of_elements || needed <= start) return;
  if (start)
    kt_fail(s->c, view->location, KJIT_ERROR_TYPE,
            "%s needs an alignment of %u bytes, but the array is only aligned to %u bytes: start "
            "the view at a later element, or declare the array with `@align(%u)`",
            kt_type_text(s->c, element), needed, start, needed);
  view->dimension = needed;
}

static kt_expr *view_of_array(kt_scope *s, const kt_operands *o)
{
  kt_expr *array = kt_make_concrete(s, o->values.items[0]);
  check_viewed(s, o, array);
  const ki_type_info *from = ki_type(s->c->types, array->type);
  ki_type_info to = { .element = o->type_argument,
                      .space = from->space,
                      .read_only = from->read_only };
  kt_expr *view = kt_new_texpr(s->c, KJ_T_VIEW, KJIT_ANY, o->location);
  view->type = type_of_extents(s, o, to, false, &view->indices);
  view->x = kt_keep_value(s, array);
  kt_view_dimension *dimensions = KJ_NEW_ARRAY(s->arena, kt_view_dimension, view->indices.count);
  for (size_t d = 0; d < view->indices.count; d++)
    dimensions[d] = (kt_view_dimension){ KJ_VIEW_SAME, (int)d, KJ_VIEW_SAME };
  view->dimensions = dimensions;
  check_room(s, view);
  check_start(s, view);
  return view;
}

static void add_stride(kt_scope *s, kt_exprs *args, kt_expr *value)
{
  if (!kt_is_integer(s->c, value->type))
    kt_fail_number(s->c, value->location, value->type,
                   "a stride of `view` must be an integer, got %s",
                   kt_type_text(s->c, value->type));
  KJ_PUSH(s->arena, args, kt_keep_value(s, kt_convert_to_index(s, value, value->location)));
}

/* Appends the strides to the extents. They are the last operand of a `view` of a pointer. */
static void add_strides(kt_scope *s, const kt_operands *o, kt_exprs *args)
{
  kt_expr *strides = o->values.items[1];
  uint32_t rank = (uint32_t)args->count;
  bool is_tuple = kt_is_tuple(s->c, strides->type);
  uint32_t count = is_tuple ? ki_type(s->c->types, strides->type)->count : 1;
  if (count != rank)
    kt_fail(s->c, strides->location, KJIT_ERROR_TYPE,
            "`view` needs one stride for each extent: got %u extents and %u strides", rank, count);
  if (!is_tuple) {
    add_stride(s, args, strides);
    return;
  }
  strides = kt_keep_value(s, strides);
  for (uint32_t d = 0; d < count; d++)
    add_stride(s, args, kt_make_item(s, kt_copy_texpr(s, strides), d, strides->location));
}

kt_expr *kt_rule_view(kt_scope *s, const kt_operands *o)
{
  kt_expr *pointer = o->values.items[0];
  bool has_strides = o->values.count == 2;
  if (has_strides && !kt_is_pointer(s->c, pointer->type))
    kt_fail(s->c, pointer->location, KJIT_ERROR_TYPE, "`view` with strides needs a pointer, got %s",
            kt_type_text(s->c, pointer->type));
  if (kt_is_array(s->c, pointer->type)) return view_of_array(s, o);
  if (!kt_is_pointer(s->c, pointer->type))
    kt_fail(s->c, pointer->location, KJIT_ERROR_TYPE,
            "`view` needs a pointer, or a shared or local array, got %s",
            kt_type_text(s->c, pointer->type));
  const ki_type_info *to = ki_type(s->c->types, pointer->type);
  if (to->element != o->type_argument) {
    const char *wanted = kt_type_text(s->c, o->type_argument);
    kt_fail(
      s->c, o->location, KJIT_ERROR_TYPE,
      "a `view` of %s cannot be created from a %s: convert the pointer with `bitcast(%s*, p)`",
      wanted, kt_type_text(s->c, pointer->type), wanted);
  }
  ki_type_info array = { .element = to->element,
                         .space = KJ_SPACE_GENERIC,
                         .read_only = to->read_only };
  kt_exprs extents = { 0 };
  kjit_type type = type_of_extents(s, o, array, has_strides, &extents);
  if (has_strides) add_strides(s, o, &extents);
  kt_expr *pointed = kt_new_texpr(s->c, KJ_T_POINTED, type, o->location);
  pointed->x = kt_keep_value(s, pointer);
  pointed->args = extents;
  return pointed;
}

/* ---- bitcast(f32*, address), bitcast(u64, p) ---- */

static kt_expr *new_convert(kt_scope *s, kt_expr *value, kjit_type type, kj_location location)
{
  kt_expr *convert = kt_new_texpr(s->c, KJ_T_CONVERT, type, location);
  convert->x = value;
  return value->type == type ? value : convert;
}

kt_expr *kt_bitcast_pointer(kt_scope *s, const kt_operands *o)
{
  kt_expr *value = o->values.items[0];
  kjit_type type = o->type_argument;
  bool from_pointer = kt_is_pointer(s->c, value->type), to_pointer = kt_is_pointer(s->c, type);
  if (!from_pointer && !to_pointer) return NULL;
  bool drops_const = from_pointer && to_pointer && ki_type(s->c->types, value->type)->read_only &&
                     !ki_type(s->c->types, type)->read_only;
  if (drops_const)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE, "`bitcast` must keep `const`: write `const %s`",
            kt_type_text(s->c, type));
  if (from_pointer && to_pointer) return new_convert(s, value, type, o->location);
  kjit_type number = from_pointer ? type : value->type;
  if (number != KJIT_U64 && number != KJIT_I64 && number != KJ_WEAK_INT)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "the address for a pointer must be a u64 or an i64, not %s",
            kt_type_text(s->c, number));
  if (from_pointer)
    return kt_convert(s, new_convert(s, value, KJIT_U64, o->location), type, o->location);
  return new_convert(s, kt_convert(s, value, KJIT_U64, o->location), type, o->location);
}

/* ---- asynchronous copies ---- */

enum { MOST_GROUPS = 63 };

static ki_space space_of(kt_scope *s, const kt_expr *array)
{
  return ki_type(s->c->types, array->type)->space;
}

/* Returns a copy's source: an element, given as a LOAD node, of the destination's type. */
static kt_expr *take_source(kt_scope *s, const kt_operands *o)
{
  kt_expr *source = o->values.items[0];
  if (source->kind != KJ_T_LOAD)
    kt_fail(s->c, source->location, KJIT_ERROR_TYPE,
            "`%s` copies from an element of an array: `%s(tile[i], x[j], n)`", o->builtin->name,
            o->builtin->name);
  if (source->type != o->place.type)
    kt_fail(s->c, source->location, KJIT_ERROR_TYPE,
            "`%s` cannot convert elements: the destination has elements of type %s, the source of "
            "type %s",
            o->builtin->name, kt_type_text(s->c, o->place.type), kt_type_text(s->c, source->type));
  return source;
}

static kt_expr *apply_copy(kt_scope *s, const kt_operands *o, kt_expr *source, kt_exprs values)
{
  kt_expr *expr = kt_new_builtin_of(s, o, values, KJIT_VOID);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  expr->y = source;
  return expr;
}

kt_expr *kt_rule_cp_async(kt_scope *s, const kt_operands *o)
{
  kt_expr *source = take_source(s, o), *count = o->values.items[1];
  uint32_t size = ki_type(s->c->types, o->place.type)->size_bytes;
  if (space_of(s, o->place.array) != KJ_SPACE_SHARED || space_of(s, source->x) != KJ_SPACE_GLOBAL)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` copies from an array argument to a shared array", o->builtin->name);
  bool is_known = kt_is_constant(count) && kt_is_integer(s->c, count->type);
  __int128 bytes = is_known ? count->integer * size : 0;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    kt_fail(s->c, count->location, KJIT_ERROR_TYPE,
            "`%s` must copy 4, 8 or 16 bytes, a number of elements known at compile time; %s has "
            "%u bytes",
            o->builtin->name, kt_type_text(s->c, o->place.type), size);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_convert(s, count, KJIT_U32, count->location));
  if (o->values.count == 3)
    KJ_PUSH(s->arena, &values, kt_take_integer(s, o, o->values.items[2], KJIT_I64));
  return apply_copy(s, o, source, values);
}

kt_expr *kt_take_group_count(kt_scope *s, const kt_operands *o, int most)
{
  kt_expr *count =
    o->values.count ? o->values.items[0] : kt_new_integer(s, KJ_WEAK_INT, 0, o->location);
  if (!kt_is_constant(count) || !kt_is_integer(s->c, count->type) || count->integer < 0 ||
      count->integer > most)
    kt_fail(s->c, count->location, KJIT_ERROR_TYPE,
            "the argument of `%s` must be a number of groups from 0 to %d, known at compile time",
            o->builtin->name, most);
  return kt_convert(s, count, KJIT_U32, count->location);
}

kt_expr *kt_rule_copy_wait(kt_scope *s, const kt_operands *o)
{
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_take_group_count(s, o, MOST_GROUPS));
  return kt_new_builtin_of(s, o, values, KJIT_VOID);
}

/* Typing rule of bulk copies. The direction of the copy decides how its completion is tracked: for
 * a copy into shared memory, a barrier counts the bytes; other copies belong to the thread's bulk
 * group. */
kt_expr *kt_rule_cp_async_bulk(kt_scope *s, const kt_operands *o)
{
  kt_expr *source = take_source(s, o);
  ki_space to = space_of(s, o->place.array), from = space_of(s, source->x);
  bool is_in = to == KJ_SPACE_SHARED && from == KJ_SPACE_GLOBAL,
       is_out = to == KJ_SPACE_GLOBAL && from == KJ_SPACE_SHARED;
  bool is_across = to == KJ_SPACE_GENERIC && from == KJ_SPACE_SHARED,
       has_barrier = o->values.count == 3;
  if (!is_in && !is_out && !is_across)
    kt_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` copies from an array argument to a shared array, from a shared array to an array "
            "argument, or from a shared array to one of another block (map_shared_rank)",
            o->builtin->name);
  if (has_barrier == is_out)
    kt_fail(
      s->c, o->location, KJIT_ERROR_TYPE,
      is_out
        ? "`%s` to global memory takes no barrier: use cp_async_bulk_commit and cp_async_bulk_wait"
        : "`%s` to shared memory needs an mbarrier as its last argument, which counts the "
          "copied bytes",
      o->builtin->name);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, kt_take_integer(s, o, o->values.items[1], KJIT_I64));
  if (has_barrier) {
    kt_expr *barrier = o->values.items[2];
    if (barrier->type != KJIT_U64 && barrier->type != KJIT_I64)
      kt_fail(s->c, barrier->location, KJIT_ERROR_TYPE,
              "the barrier must be a u64 in shared memory, got %s",
              kt_type_text(s->c, barrier->type));
    if (barrier->kind == KJ_T_LOAD && kt_is_other_block(s, barrier->x) != is_across)
      kt_fail(s->c, barrier->location, KJIT_ERROR_TYPE,
              "the barrier must be in the shared memory of the block that receives the elements");
    KJ_PUSH(s->arena, &values, kt_take_shared_address(s, o->builtin->name, barrier));
  }
  return apply_copy(s, o, source, values);
}

/* ---- tensor copies ---- */

static void check_tile(kt_scope *s, const kt_operands *o, const kt_expr *tile, const kt_expr *array,
                       kj_location location)
{
  const ki_type_info *info = ki_type(s->c->types, tile->type),
                     *whole = ki_type(s->c->types, array->type);
  enum { MOST_EXTENT = KJ_MAP_MOST_BOX, UNIT = 16 };
  if (!kt_is_array(s->c, tile->type) || info->space != KJ_SPACE_SHARED || !info->is_static)
    kt_fail(s->c, tile->location, KJIT_ERROR_TYPE,
            "the tile of `%s` must be a shared array with extents known at compile time, got %s",
            o->builtin->name, kt_type_text(s->c, tile->type));
  if (whole->space != KJ_SPACE_GLOBAL || whole->layout != KJIT_LAYOUT_C ||
      whole->rank > KJ_MAP_RANK)
    kt_fail(
      s->c, location, KJIT_ERROR_TYPE,
      "`%s` needs an array argument of layout C with at most %d dimensions, `f32[:, ::1]`; got %s",
      o->builtin->name, KJ_MAP_RANK, kt_type_text(s->c, array->type));
  if (info->element != whole->element || info->rank != whole->rank)
    kt_fail(s->c, tile->location, KJIT_ERROR_TYPE,
            "the tile of `%s` must have the element type and number of dimensions of the array: "
            "got a tile of type %s for an array of type %s",
            o->builtin->name, kt_type_text(s->c, tile->type), kt_type_text(s->c, array->type));
  for (uint32_t d = 0; d < info->rank; d++)
    if (info->extents[d] > MOST_EXTENT)
      kt_fail(s->c, tile->location, KJIT_ERROR_TYPE,
              "an extent of a tile must be at most %d, got %lld", MOST_EXTENT,
              (long long)info->extents[d]);
  uint64_t row =
    (uint64_t)info->extents[info->rank - 1] * ki_type(s->c->types, info->element)->size_bytes;
  if (row % UNIT)
    kt_fail(s->c, tile->location, KJIT_ERROR_TYPE,
            "the size of a row of the tile must be a multiple of %d bytes; this one has %llu bytes",
            UNIT, (unsigned long long)row);
  if (!ki_is_scalar(info->element) || info->element == KJIT_BOOL ||
      kt_class_of(s->c, info->element) == KJ_CLASS_COMPLEX)
    kt_fail(s->c, tile->location, KJIT_ERROR_TYPE,
            "`%s` copies numbers, but the elements have the type %s", o->builtin->name,
            kt_type_text(s->c, info->element));
}

static kt_expr *take_swizzle(kt_scope *s, const kt_operands *o, size_t index, const kt_expr *tile)
{
  const ki_type_info *info = ki_type(s->c->types, tile->type);
  kt_expr *swizzle = index < o->values.count ? o->values.items[index]
                                             : kt_new_integer(s, KJ_WEAK_INT, 0, o->location);
  bool is_known = kt_is_constant(swizzle) && kt_is_integer(s->c, swizzle->type);
  if (!is_known || (swizzle->integer != 0 && swizzle->integer != 32 && swizzle->integer != 64 &&
                    swizzle->integer != 128))
    kt_fail(s->c, swizzle->location, KJIT_ERROR_TYPE,
            "the swizzle must be 0, 32, 64 or 128 bytes and known at compile time");
  uint64_t row =
    (uint64_t)info->extents[info->rank - 1] * ki_type(s->c->types, info->element)->size_bytes;
  if (swizzle->integer && (__int128)row != swizzle->integer)
    kt_fail(
      s->c, swizzle->location, KJIT_ERROR_TYPE,
      "a swizzle of %s bytes needs rows of that size, but the rows of the tile have %llu bytes",
      kt_integer_text(s->arena, swizzle->integer), (unsigned long long)row);
  return kt_convert(s, swizzle, KJIT_U32, swizzle->location);
}

kt_expr *kt_rule_cp_async_tensor(kt_scope *s, const kt_operands *o)
{
  kt_expr *source = o->values.items[0], *barrier = o->values.items[1], *tile = o->place.array;
  if (source->kind != KJ_T_LOAD)
    kt_fail(s->c, source->location, KJIT_ERROR_TYPE,
            "the second argument of `%s` must be an element of an array argument, where the copy "
            "starts: `%s(tile, x[i, j], barrier)`",
            o->builtin->name, o->builtin->name);
  check_tile(s, o, tile, source->x, source->location);
  if (barrier->type != KJIT_U64 && barrier->type != KJIT_I64)
    kt_fail(s->c, barrier->location, KJIT_ERROR_TYPE,
            "the barrier must be a u64 in shared memory, got %s",
            kt_type_text(s->c, barrier->type));
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, take_swizzle(s, o, 2, tile));
  KJ_PUSH(s->arena, &values, kt_take_shared_address(s, o->builtin->name, barrier));
  kt_expr *expr = kt_new_builtin_of(s, o, values, KJIT_VOID);
  expr->x = tile;
  expr->y = source;
  return expr;
}

kt_expr *kt_rule_cp_async_tensor_store(kt_scope *s, const kt_operands *o)
{
  kt_expr *tile = o->values.items[0];
  check_tile(s, o, tile, o->place.array, o->place.location);
  kt_exprs values = { 0 };
  KJ_PUSH(s->arena, &values, take_swizzle(s, o, 1, tile));
  kt_expr *expr = kt_new_builtin_of(s, o, values, KJIT_VOID);
  expr->x = o->place.array;
  expr->indices = o->place.indices;
  expr->y = tile;
  return expr;
}

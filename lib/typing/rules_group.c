/* Result rules of the built-ins through which warps and blocks meet: named barriers, barriers of
 * phases in shared memory (mbarrier), clusters. */
#include "typing/rules.h"

kj_texpr *kj_take_integer(kj_scope *s, const kj_operands *o, kj_texpr *value, kjit_type type)
{
  if (!kj_is_integer(s->c, value->type))
    kj_fail(s->c, value->location, KJIT_ERROR_TYPE, "`%s` needs an integer here, got %s",
            o->builtin->name, kj_type_text(s->c, value->type));
  return kj_convert(s, value, type, value->location);
}

static kj_texpr *apply(kj_scope *s, const kj_operands *o, kj_texprs values, kjit_type type)
{
  kj_operands typed = *o;
  typed.values = values;
  return kj_new_builtin(s, &typed, type);
}

/* ---- named barriers ---- */

kj_texpr *kj_rule_named_barrier(kj_scope *s, const kj_operands *o)
{
  enum { BARRIERS = 16, WARP = 32, MOST = 1024 };
  kj_texprs values = { 0 };
  kj_texpr *id = kj_take_integer(s, o, o->values.items[0], KJIT_U32),
           *count = kj_take_integer(s, o, o->values.items[1], KJIT_U32);
  if (kj_is_constant(id) && (id->integer < 1 || id->integer >= BARRIERS))
    kj_fail(s->c, id->location, KJIT_ERROR_TYPE,
            "named barriers are 1 to %d (0 is that of syncthreads), not %s", BARRIERS - 1,
            kj_integer_text(s->arena, id->integer));
  if (kj_is_constant(count) &&
      (count->integer < WARP || count->integer > MOST || count->integer % WARP))
    kj_fail(s->c, count->location, KJIT_ERROR_TYPE,
            "`%s` counts whole warps: a multiple of %d up to %d, not %s", o->builtin->name, WARP,
            MOST, kj_integer_text(s->arena, count->integer));
  KJ_PUSH(s->arena, &values, id);
  KJ_PUSH(s->arena, &values, count);
  return apply(s, o, values, KJIT_VOID);
}

/* ---- places in shared memory ---- */

static const kj_builtin *address_builtin(void)
{
  return &kj_builtin_table[KJ_BUILTIN_SHARED_ADDRESS];
}

static bool is_shared(kj_scope *s, const kj_texpr *array)
{
  kj_space space = kj_type(s->c->types, array->type)->space;
  return space == KJ_SPACE_SHARED || space == KJ_SPACE_GENERIC;
}

static kj_texpr *new_address(kj_scope *s, const char *what, kj_texpr *array, kj_texprs indices,
                             kj_location location)
{
  if (!is_shared(s, array))
    kj_fail(s->c, location, KJIT_ERROR_TYPE,
            "`%s` needs an element of a shared array or a shared scalar here, got one of %s", what,
            kj_type_text(s->c, array->type));
  kj_texpr *address = kj_new_texpr(s->c, KJ_T_BUILTIN, KJIT_I64, location);
  address->builtin = address_builtin();
  address->x = array;
  address->indices = indices;
  return address;
}

kj_texpr *kj_make_shared_address(kj_scope *s, const char *what, const kj_place *place)
{
  return new_address(s, what, place->array, place->indices, place->location);
}

kj_texpr *kj_take_shared_address(kj_scope *s, const char *what, const kj_texpr *load)
{
  if (load->kind != KJ_T_LOAD)
    kj_fail(s->c, load->location, KJIT_ERROR_TYPE,
            "`%s` needs an element of a shared array here: `tile[i]`", what);
  return new_address(s, what, load->x, load->args, load->location);
}

bool kj_is_other_block(kj_scope *s, const kj_texpr *array)
{
  return kj_type(s->c->types, array->type)->space == KJ_SPACE_GENERIC;
}

kj_texpr *kj_rule_shared_address(kj_scope *s, const kj_operands *o)
{
  return kj_make_shared_address(s, o->builtin->name, &o->place);
}

/* ---- mbarriers ---- */

typedef struct phase_op {
  kj_builtin_id id;
  kjit_type operand, result; /* operand VOID: none */
} phase_op;

static const phase_op phase_ops[] = {
  { KJ_BUILTIN_MBARRIER_INIT, KJIT_U32, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_INVAL, KJIT_VOID, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_ARRIVE, KJIT_U32, KJIT_U64 },
  { KJ_BUILTIN_MBARRIER_EXPECT_TX, KJIT_U32, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_ARRIVE_EXPECT_TX, KJIT_U32, KJIT_U64 },
  { KJ_BUILTIN_MBARRIER_TEST_WAIT, KJIT_U64, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_TEST_WAIT_PARITY, KJIT_U32, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_TRY_WAIT, KJIT_U64, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_TRY_WAIT_PARITY, KJIT_U32, KJIT_BOOL },
  { KJ_BUILTIN_MBARRIER_WAIT, KJIT_U64, KJIT_VOID },
  { KJ_BUILTIN_MBARRIER_WAIT_PARITY, KJIT_U32, KJIT_VOID },
  { KJ_BUILTIN_CP_ASYNC_ARRIVE, KJIT_VOID, KJIT_VOID },
};

static const phase_op *find_phase_op(kj_builtin_id id)
{
  size_t i = 0;
  while (phase_ops[i].id != id) i++;
  return &phase_ops[i];
}

static void check_phase_place(kj_scope *s, const kj_operands *o)
{
  if (o->place.type == KJIT_U64 || o->place.type == KJIT_I64) return;
  kj_fail(s->c, o->place.location, KJIT_ERROR_TYPE, "`%s` needs a u64 in shared memory, got %s",
          o->builtin->name, kj_type_text(s->c, o->place.type));
}

kj_texpr *kj_rule_mbarrier(kj_scope *s, const kj_operands *o)
{
  const phase_op *op = find_phase_op(o->builtin->id);
  bool is_other = kj_is_other_block(s, o->place.array),
       can_be_other =
         op->operand == KJIT_U32 && op->result != KJIT_BOOL && op->id != KJ_BUILTIN_MBARRIER_INIT;
  kj_texprs values = { 0 };
  check_phase_place(s, o);
  if (is_other && (!can_be_other || (o->builtin->flags & KJ_WAITS)))
    kj_fail(s->c, o->location, KJIT_ERROR_TYPE,
            "`%s` takes a barrier of the thread's own block: other blocks can only arrive there",
            o->builtin->name);
  KJ_PUSH(s->arena, &values, kj_make_shared_address(s, o->builtin->name, &o->place));
  for (size_t i = 0; i < o->values.count; i++)
    KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[i], op->operand));
  bool is_counted = op->id == KJ_BUILTIN_MBARRIER_ARRIVE && o->values.count;
  if (is_counted || is_other)
    kj_require_arch(s,
                    is_counted ? "`mbarrier_arrive` with a count"
                               : "arriving at another block's barrier",
                    o->location, 90, 0, 80);
  kj_texpr *expr = apply(s, o, values, is_other ? KJIT_VOID : op->result);
  expr->dimension = is_other;
  return expr;
}

kj_texpr *kj_rule_pending_count(kj_scope *s, const kj_operands *o)
{
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[0], KJIT_U64));
  return apply(s, o, values, KJIT_I32);
}

/* ---- clusters ---- */

kj_texpr *kj_rule_map_shared_rank(kj_scope *s, const kj_operands *o)
{
  kj_texpr *array = o->values.items[0];
  /* a shared scalar: as an array of no dimension */
  if (array->kind == KJ_T_LOAD && !array->args.count) array = array->x;
  const kj_type_info *info = kj_type(s->c->types, array->type);
  if (!kj_is_array(s->c, array->type) || info->space != KJ_SPACE_SHARED || !info->is_static)
    kj_fail(
      s->c, array->location, KJIT_ERROR_TYPE,
      "`%s` needs a shared array with extents known at compile time or a shared scalar, got %s",
      o->builtin->name, kj_type_text(s->c, array->type));
  kj_type_info mapped = *info;
  mapped.space = KJ_SPACE_GENERIC;
  kjit_type type = kj_intern_array(s->c->types, &mapped);
  if (type == KJIT_ANY) longjmp(*s->c->on_failure, KJ_JUMP_MEMORY);
  kj_texprs values = { 0 };
  KJ_PUSH(s->arena, &values, array);
  KJ_PUSH(s->arena, &values, kj_take_integer(s, o, o->values.items[1], KJIT_U32));
  return apply(s, o, values, type);
}

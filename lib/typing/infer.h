/* What the files of inference share. Other parts see typing/typed.h only.
 *
 * A function body is inferred in rounds: the type of a `var` that starts with a literal, the type
 * of the result and which variables differ between threads are guesses that only go up; the round
 * in which no guess changed is the one that is kept. */
#ifndef KJ_TYPING_INFER_H
#define KJ_TYPING_INFER_H

#include "typing/typed.h"

/* How far a value may differ: an order, so that the level of a whole is the greatest level of its
 * parts. */
typedef enum kj_level { KJ_LEVEL_GRID, KJ_LEVEL_BLOCK, KJ_LEVEL_THREAD } kj_level;

static inline kj_level kj_higher_level(kj_level a, kj_level b) { return a > b ? a : b; }

/* What is called: one of the two. */
typedef struct kj_callee {
  const kj_function *function;
  const kj_builtin *builtin;
} kj_callee;

typedef enum kj_meaning_kind {
  KJ_MEANS_NOTHING,
  KJ_MEANS_VARIABLE, /* .var */
  /* .value: a constant, a weak tree or a tuple of such and of variables; copied where it is used */
  KJ_MEANS_VALUE,
  KJ_MEANS_CALLEE /* .callee */
} kj_meaning_kind;

/* What a declaration stands for in the instance being inferred. */
typedef struct kj_meaning {
  kj_meaning_kind kind;
  kj_tvar *var;
  kj_texpr *value;
  kj_callee callee;
  bool is_scalar; /* a shared scalar: its name is its element */
} kj_meaning;

/* What is guessed about a declaration, kept from round to round. */
typedef struct kj_guess {
  kjit_type type; /* VAR that starts with a literal: join of what was assigned */
  kj_level level;
  bool was_read;   /* in this round */
  bool is_default; /* it has met literals only */
} kj_guess;

typedef enum kj_bound_kind {
  KJ_BOUND_NONE,
  KJ_BOUND_VALUE,
  KJ_BOUND_WEAK,
  KJ_BOUND_CONST,
  KJ_BOUND_CALLEE
} kj_bound_kind;

/* What a parameter is bound to: the parts of an instance's key. */
typedef struct kj_bound {
  kj_bound_kind kind;
  kjit_type type;   /* VALUE, CONST; WEAK: of the literal that it is like */
  __int128 integer; /* CONST: as in kj_value */
  kj_callee callee;
} kj_bound;

typedef struct kj_message {
  kj_location location;
  kjit_severity severity;
  const char *text;
} kj_message;

/* An instance and what only inference knows about it. */
typedef struct kj_record kj_record;
struct kj_record {
  kj_instance *instance;
  const kj_bound *bounds; /* one for each parameter of the function */
  bool is_done;
  bool is_reentered; /* called while under way */
  /* instance->result is known before the body is: a call of itself may ask for it */
  bool has_fixed_result;
  kjit_type result;          /* guess: weak types too; KJIT_ANY: no return yet */
  kj_texpr *constant_result; /* the body does nothing but return this constant */
  kj_level result_level;
  bool has_grid_range, has_block_range;
  KJ_LIST(kj_message) messages; /* of the last round */
  KJ_LIST(kj_record *) callees; /* of the last round */
  bool is_reached;
};

/* Elements of a module constant, before they have met a type. */
typedef struct kj_constant {
  const char *name;
  kjit_type element; /* may be weak */
  bool is_array;
  uint32_t rank;
  int64_t extents[KJ_MAX_RANK];
  KJ_LIST(kj_texpr *) elements; /* row-major */
  bool is_being_made;
} kj_constant;

typedef struct kj_inference {
  kj_compilation *c;
  KJ_LIST(kj_record *) records; /* instance->id is the position while inference runs */
  kj_constant **constants;      /* by index of the module's declaration */
  size_t constant_count;
  uint64_t work; /* statements and expressions inferred, all rounds together */
  uint32_t depth;
  bool has_double; /* some argument is f64: no remarks about f64 */
  uint32_t remark_count;
} kj_inference;

/* A constant array made concrete in an instance. */
typedef struct kj_constant_use {
  const kj_constant *constant;
  kjit_type element;
  kj_tvar *var;
} kj_constant_use;

/* The function being inferred. */
typedef struct kj_scope {
  kj_inference *inference;
  kj_compilation *c;
  kj_arena *arena;
  kj_record *record;
  kj_instance *instance;
  const kj_function *function;
  kj_meaning *meanings; /* by index of the declaration, as guesses */
  kj_guess *guesses;
  kj_tstmts *out; /* where statements go */
  kjit_type result_annotation;
  bool is_changed;     /* a guess went up in this round */
  bool is_quiet;       /* inside something that is not evaluated */
  kj_level level;      /* of the control flow here */
  kj_level left_level; /* how far threads that have returned may differ */
  /* the same for those that have left the iteration of the innermost loop */
  kj_level skipped_level;
  uint32_t range_count;   /* grid_range and block_range around here */
  bool is_range_body;     /* the innermost loop is one of them */
  uint32_t runtime_count; /* shared arrays with extents of the launch */
  uint64_t local_bytes, shared_bytes;
  KJ_LIST(kj_level) levels; /* of variables, by index */
  KJ_LIST(kj_constant_use) constant_uses;
  uint32_t temporary_count;
} kj_scope;

/* ---- infer.c ---- */

/* The instance of a function for its arguments, inferred when it is new. */
kj_record *kj_get_record(kj_scope *s, const kj_function *function, const kj_bound *bounds,
                         kj_location location);
/* A new one, not yet inferred. */
kj_record *kj_add_record(kj_inference *inference, const kj_function *function,
                         const kj_bound *bounds, bool is_strict, bool is_fastmath);

/* ---- infer_body.c ---- */

void kj_infer_body(kj_inference *inference, kj_record *record);

/* Sets is_recursive. Calls of a function under way have told their callers only what was known by
 * then: hands that round. While instances are numbered by their records. */
void kj_find_recursion(kj_inference *inference);

/* A scope that has no variables, for expressions outside functions. */
void kj_init_scope(kj_scope *s, kj_inference *inference);
void kj_count_work(kj_inference *inference, kj_location location);
/* Variables of a scope; level as far as known. */
kj_tvar *kj_add_variable(kj_scope *s, kj_tvar_kind kind, const char *name, kjit_type type,
                         kj_location location, kj_level level);
void kj_bind_variable(kj_scope *s, const kj_decl *decl, kj_tvar *var);
void kj_bind_value(kj_scope *s, const kj_decl *decl, kj_texpr *value);

void kj_note_message(kj_scope *s, kj_location location, kjit_severity severity, const char *format,
                     ...) __attribute__((format(printf, 4, 5)));
/* "f64 arithmetic where none was asked for". */
void kj_note_double(kj_scope *s, kj_location location);
/* Those of an instance that is used. */
void kj_report_messages(kj_inference *inference, const kj_record *record);

/* ---- infer_kernel.c ---- */

/* What the parameters of the kernel are bound to by the request. */
kj_bound *kj_bind_signature(kj_inference *inference, const kj_function *kernel);
/* @block, @grid and @launch_bounds, when the body is done. */
void kj_infer_launch(kj_scope *s);

/* ---- infer_stmt.c ---- */

void kj_infer_block(kj_scope *s, const kj_stmts *stmts, kj_tstmts *out);
void kj_emit(kj_scope *s, kj_tstmt *stmt);
void kj_infer_while(kj_scope *s, const kj_stmt *stmt);
void kj_infer_for(kj_scope *s, const kj_stmt *stmt);

/* ---- infer_expr.c ---- */

void kj_infer_print(kj_scope *s, const kj_stmt *stmt);

/* ---- infer_variable.c ---- */

/* place->var = value, where the value may change what is guessed about the variable. */
struct kj_place;
void kj_assign_variable(kj_scope *s, const struct kj_place *place, kj_texpr *value,
                        kj_location location);
void kj_emit_assign(kj_scope *s, kj_tvar *var, kj_texpr *value, kj_location location);
/* The value in a temporary, unless it is a constant or cannot change. Statements are added at
 * position `at` of the list. */
kj_texpr *kj_keep_value_at(kj_scope *s, kj_texpr *value, size_t at);
kj_texpr *kj_keep_value(kj_scope *s, kj_texpr *value);
/* What costs nothing and reads the same wherever it is evaluated. */
bool kj_is_stable(const kj_texpr *value);
/* An integer literal that i32 does not hold. */
bool kj_is_too_wide(const kj_texpr *value);
/* A let or a var with its first value. */
void kj_declare(kj_scope *s, const kj_decl *decl, kj_texpr *value);

/* ---- infer_expr.c, typed.c, operators.c ---- */

/* The expression's value: scalar (weak types too), array or tuple. Fails for what has none. */
kj_texpr *kj_infer_expr(kj_scope *s, const kj_expr *expr);
/* The same where a call without a result is allowed. */
kj_texpr *kj_infer_effect(kj_scope *s, const kj_expr *expr);
/* As bool: a bool or an integer. */
kj_texpr *kj_infer_condition(kj_scope *s, const kj_expr *expr);
/* All of a list, left to right. */
void kj_infer_list(kj_scope *s, const kj_exprs *exprs, kj_texprs *values);
/* An integer known at compile time; fails with what it is for. */
int64_t kj_infer_constant(kj_scope *s, const kj_expr *expr, const char *what);
/* Its type only: nothing is evaluated. */
kjit_type kj_infer_type_of(kj_scope *s, const kj_expr *expr);
/* The common type of values that are alternatives: numbers, tuples item by item, equal types.
 * KJIT_ANY: none. */
kjit_type kj_join_values(kj_scope *s, kjit_type a, kjit_type b, kj_location location);
/* A value as such an alternative. */
kj_texpr *kj_give_type(kj_scope *s, kj_texpr *value, kjit_type type);
/* An integer beside a var that has met nothing but float literals so far: a float that it meets
 * later decides, and f64 only where there is none. */
bool kj_stays_open(const kj_scope *s, const kj_texpr *x, const kj_texpr *y);
/* A number as bool. */
kj_texpr *kj_make_condition(kj_scope *s, kj_texpr *value);
kj_texpr *kj_make_unary(kj_scope *s, kjit_op op, kj_texpr *x, kj_location location);
kj_texpr *kj_make_binary(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y, kj_location location);
kj_texpr *kj_make_cond(kj_scope *s, kj_texpr *condition, kj_texpr *x, kj_texpr *y,
                       kj_location location);
/* Fails where the tuple has more numbers than are passed around; each function may put what it was
 * given into a tuple twice. */
kjit_type kj_tuple_type(kj_scope *s, const kjit_type *items, uint32_t count, kj_location location);
kj_texpr *kj_make_tuple(kj_scope *s, const kj_texprs *items, kj_location location);
/* Item of a tuple; of a TUPLE node the item itself. */
kj_texpr *kj_make_item(kj_scope *s, kj_texpr *tuple, uint32_t index, kj_location location);
kj_texpr *kj_make_var(kj_scope *s, kj_tvar *var, kj_location location);
static inline kj_texpr *kj_copy_texpr(kj_scope *s, const kj_texpr *expr)
{
  return kj_clone_texpr(s->c, expr, NULL, NULL);
}
kj_level kj_level_of(const kj_scope *s, const kj_texpr *expr);

/* ---- infer_type.c ---- */

/* A type as written. Static arrays need the declaration's place: see kj_declare_storage. */
kjit_type kj_infer_type(kj_scope *s, const kj_type_expr *type);
/* Whether an expression names a type (`f32`, `dtype(x)`); then *type. */
bool kj_as_type(kj_scope *s, const kj_expr *expr, kjit_type *type);
/* Whether it names a function (`add`, a func parameter); then *callee. */
bool kj_as_callee(kj_scope *s, const kj_expr *expr, kj_callee *callee);
void kj_declare_storage(kj_scope *s, const kj_decl *decl);
/* Binds a scalar or array to an annotation: converts what may be, fails otherwise. what: "argument
 * `x`". */
kj_texpr *kj_fit_annotation(kj_scope *s, kj_texpr *value, kjit_type annotation, const char *what,
                            kj_location location);
/* The same for types only: whether an array of type `from` may be used as `to`. */
bool kj_array_fits(const kj_compilation *c, kjit_type from, kjit_type to);
/* Whether every value of a scalar type has the same value in the other, or both are floats. */
bool kj_scalar_fits(const kj_compilation *c, kjit_type from, kjit_type to);

/* ---- infer_kernel.c ---- */

/* Whether a shared array's extents are not all known at compile time; then checks that the
 * dispatcher can know them. */
bool kj_has_runtime_extents(kj_scope *s, const kj_decl *decl);
void kj_check_runtime_extents(kj_scope *s, const kj_decl *decl);

/* ---- infer_index.c ---- */

/* Element, part or tuple item: x[...]. */
kj_texpr *kj_infer_index(kj_scope *s, const kj_expr *expr);
/* The same of a base that was evaluated. A whole element of memory comes as a LOAD, a part of it as
 * an array. */
kj_texpr *kj_index_value(kj_scope *s, const kj_expr *expr, kj_texpr *base);
/* The indices in x[...] where x is a vector or an array inside a struct. */
kj_texprs kj_infer_part_indices(kj_scope *s, const kj_expr *expr, kjit_type type);
/* An element of such a value. */
kj_texpr *kj_take_part(kj_scope *s, kj_texpr *value, const kj_texprs *indices,
                       kj_location location);
/* `a.shape` and its kin; NULL: there is none of that name. */
kj_texpr *kj_infer_property(kj_scope *s, const kj_expr *expr, kj_texpr *array);

/* ---- infer_place.c ---- */

kj_texpr *kj_infer_field(kj_scope *s, const kj_expr *expr);
/* A component of a value: of what is in memory, it alone is read. */
kj_texpr *kj_read_component(kj_scope *s, kj_texpr *value, kj_component component,
                            kj_location location);
/* The array that a pointer is to: of no known extent. */
kj_texpr *kj_make_pointed(kj_scope *s, kj_texpr *pointer, kj_location location);
/* From a value to a part of it: a component or, where there are indices, an element. */
typedef struct kj_step {
  uint32_t component;
  kj_texprs indices;
  kjit_type type; /* of the part */
} kj_step;
/* What can be assigned. */
typedef struct kj_place {
  kj_tvar *var; /* else an element */
  const kj_decl *decl;
  kj_texpr *array;
  kj_texprs indices;
  KJ_LIST(kj_step) steps; /* the part of it that is meant; none: all */
  /* of what is kept there; weak for a var that has met no type yet; of an array inside a struct in
   * memory, its type in a value */
  kjit_type type;
  bool is_array; /* array is what is meant, all of it */
  kj_location location;
} kj_place;
void kj_infer_place(kj_scope *s, const kj_expr *expr, kj_place *place);
kj_texpr *kj_load_place(kj_scope *s, const kj_place *place);
void kj_store_place(kj_scope *s, const kj_place *place, kj_texpr *value, kj_location location);
/* Makes the place one that can be used twice: what it is found by is evaluated once. */
void kj_keep_place(kj_scope *s, kj_place *place);
kj_texpr *kj_make_extent(kj_scope *s, kj_texpr *array, uint32_t dimension, kj_location location);
kj_texpr *kj_make_shape(kj_scope *s, kj_texpr *array, kj_location location);
kj_texpr *kj_make_size(kj_scope *s, kj_texpr *array, kj_location location);
/* `-` and a literal: counts from the end. */
bool kj_is_from_end(const kj_expr *expr, __int128 *distance);

/* ---- composed_value.c ---- */

bool kj_is_struct(const kj_compilation *c, kjit_type type);
bool kj_is_vector(const kj_compilation *c, kjit_type type);
bool kj_is_complex(const kj_compilation *c, kjit_type type);
bool kj_is_pointer(const kj_compilation *c, kjit_type type);
/* part of a struct's value; kj_is_array does not hold for it */
bool kj_is_value_array(const kj_compilation *c, kjit_type type);
bool kj_is_composed(const kj_compilation *c, kjit_type type); /* one of these */
/* A field of a struct, a lane .x .y .z .w of a vector, .real or .imag. */
bool kj_find_component(const kj_compilation *c, kjit_type type, const char *name,
                       kj_component *component);
/* All parts of a composed value, each of its own type. Evaluated in order. */
kj_texpr *kj_make_composed(kj_scope *s, kjit_type type, const kj_texprs *parts,
                           kj_location location);
/* A value where one of the type is kept: numbers convert as stores do, a pointer gets const, arrays
 * with extents and tuples become arrays inside structs. Fails otherwise. what: "the field". */
kj_texpr *kj_fit_value(kj_scope *s, kj_texpr *value, kjit_type type, const char *what,
                       kj_location location);
/* The indices of element `place`, in row-major order, of an array with static extents. */
kj_texprs kj_indices_of(kj_scope *s, const kj_type_info *array, int64_t place,
                        kj_location location);
/* `S(a, b)`: the values of all fields. */
kj_texpr *kj_construct_struct(kj_scope *s, const kj_texprs *values, kjit_type type,
                              kj_location location);
/* The value of a type whose parts are all 0. */
kj_texpr *kj_make_zero(kj_scope *s, kjit_type type, kj_location location);
/* How many scalars (and pointers) a value is made of. */
uint64_t kj_count_parts(const kj_compilation *c, kjit_type type);

/* ---- composed_value.c: vectors and complex numbers ---- */

bool kj_has_parts(const kj_compilation *c, kjit_type type); /* one of the two */
/* Of a lane; of the real and imaginary parts. Any other type: itself. */
kjit_type kj_part_type(const kj_compilation *c, kjit_type type);
kjit_type kj_vector_of(kj_scope *s, kjit_type element, uint32_t lanes);
/* A vector with as many lanes, a complex type, of such parts. */
kjit_type kj_with_part(kj_scope *s, kjit_type like, kjit_type part);
/* A value whose parts are made of those of another. */
typedef kj_texpr *(*kj_make_part)(kj_scope *s, kj_texpr *part, uint32_t index, const void *data);
kj_texpr *kj_map_parts(kj_scope *s, kjit_type type, kj_texpr *value, kj_make_part make,
                       const void *data, kj_location location);
/* kj_convert where either type has parts: lane by lane, part by part; numbers fill all lanes, and
 * have no imaginary part. */
kj_texpr *kj_convert_parts(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location);
/* Whether a value has the parts for a type: as many lanes, complex parts; a number has them all. */
bool kj_keeps_parts(const kj_compilation *c, kjit_type from, kjit_type to);
/* kj_promote where either has parts. KJIT_ANY: none, and none of values of different numbers of
 * lanes. */
kjit_type kj_promote_parts(kj_scope *s, kjit_type a, kjit_type b, kj_location location);
/* `f32x4(v.xy, 0, 1)`, `c64(re, im)`. */
kj_texpr *kj_construct_parts(kj_scope *s, const kj_texprs *values, kjit_type type,
                             kj_location location);
/* Lanes by letters: `v.xyz`. NULL: they are none of the value's. */
kj_texpr *kj_infer_swizzle(kj_scope *s, const kj_expr *expr, kj_texpr *vector);

/* ---- operators_lanes.c ---- */

/* kj_make_binary, kj_make_unary where an operand has parts. */
kj_texpr *kj_make_binary_parts(kj_scope *s, kjit_op op, kj_texpr *x, kj_texpr *y,
                               kj_location location);
kj_texpr *kj_make_unary_parts(kj_scope *s, kjit_op op, kj_texpr *x, kj_location location);
/* kj_apply_rule where an operand has parts; takes_lanes: the rule is one for each lane of a vector.
 * NULL: the rule takes them as they are. */
struct kj_operands;
kj_texpr *kj_apply_rule_parts(kj_scope *s, const struct kj_operands *operands, bool takes_lanes);

/* ---- infer_view.c ---- */

/* What is taken of one dimension of an array. */
typedef struct kj_slice {
  bool is_index;           /* one position: the dimension goes */
  bool is_whole;           /* all of it */
  kj_texpr *start;         /* any integer for an index, else i64 */
  kj_texpr *extent, *step; /* i64, of a part; step NULL: 1 */
} kj_slice;
kj_slice kj_infer_slice(kj_scope *s, const kj_expr *slice, const kj_texpr *array,
                        uint32_t dimension);
/* The array itself where all is taken. */
kj_texpr *kj_make_view(kj_scope *s, kj_texpr *array, const kj_slice *slices, kj_location location);
kj_texpr *kj_make_transpose(kj_scope *s, kj_texpr *array, kj_location location);
/* A type that arrays of both can be used as: what they do not share, layout and static extents, is
 * forgotten. KJIT_ANY: there is none. */
kjit_type kj_join_arrays(kj_scope *s, kjit_type a, kjit_type b);
/* The array as one of such a type. */
kj_texpr *kj_give_array_type(kj_scope *s, kj_texpr *array, kjit_type type);

/* ---- infer_call.c ---- */

kj_texpr *kj_infer_call(kj_scope *s, const kj_expr *expr);
/* A built-in used as a name: laneid, pi; or threadIdx with its field. */
kj_texpr *kj_infer_builtin_name(kj_scope *s, const kj_expr *expr, const kj_builtin *builtin,
                                const char *field);
/* What an annotation says when the other parameters are bound so; KJIT_ANY: there is none. bounds
 * without a value are KJ_BOUND_NONE. */
kjit_type kj_infer_annotation(kj_inference *inference, const kj_function *function,
                              const kj_bound *bounds, size_t index);

/* ---- infer_call.c ---- */

/* The arguments of a call of an extern func as the C ABI takes them; refuses those that it cannot.
 */
void kj_bind_extern_call(kj_scope *s, const kj_function *function, kj_bound *bounds,
                         kj_texpr **arguments, const kj_expr *call);
/* Whether a value of the type goes to or from a C function; what: for the message. */
void kj_check_c_type(kj_scope *s, kjit_type type, const char *what, kj_location location);

/* ---- module_constants.c ---- */

const kj_constant *kj_get_constant(kj_scope *s, const kj_decl *decl);
/* The value of a scalar constant, or an array of a constant: weak ones have a weak element type
 * until they are used. */
kj_texpr *kj_make_constant(kj_scope *s, const kj_decl *decl, kj_location location);
/* The constant behind an array expression whose elements have met no type yet, or NULL. */
const kj_constant *kj_weak_constant(const kj_scope *s, const kj_texpr *array);
/* The element type when the array meets none. */
kjit_type kj_concrete_element(const kj_constant *constant);
/* The array with elements of a type. */
kj_texpr *kj_make_constant_array(kj_scope *s, const kj_constant *constant, kjit_type element,
                                 kj_location location);

/* ---- promote.c ---- */

kj_type_class kj_class_of(const kj_compilation *c, kjit_type type);
bool kj_is_integer(const kj_compilation *c, kjit_type type); /* typed or weak; not bool */
bool kj_is_float(const kj_compilation *c, kjit_type type);   /* typed or weak */
bool kj_is_number(const kj_compilation *c, kjit_type type);  /* bool, integers, floats, weak */
bool kj_is_array(const kj_compilation *c, kjit_type type);
bool kj_is_tuple(const kj_compilation *c, kjit_type type);
/* The common type of two operands by the rules of arithmetic. KJIT_ANY: none (i64 with u64). */
kjit_type kj_promote(kj_scope *s, kjit_type a, kjit_type b, kj_location location);
/* The same for values that are only kept side by side: bool stays bool, i8 stays i8. */
kjit_type kj_join(kj_scope *s, kjit_type a, kjit_type b, kj_location location);
/* Any number to a scalar type, weak trees too. */
kj_texpr *kj_convert(kj_scope *s, kj_texpr *value, kjit_type type, kj_location location);
/* What a store may convert: all but float to integer. what: "element of `x`". */
kj_texpr *kj_convert_stored(kj_scope *s, kj_texpr *value, kjit_type type, const char *what,
                            kj_location location);
/* A value that meets no type: weak ones become i32, i64 or f64; items of tuples too. */
kj_texpr *kj_make_concrete(kj_scope *s, kj_texpr *value);
/* An integer that a float is raised to: it keeps a type of its own. */
kj_texpr *kj_make_exponent(kj_scope *s, kj_texpr *exponent);
/* The type that this gives. */
kjit_type kj_concrete_type(const kj_texpr *value);
kj_texpr *kj_new_integer(kj_scope *s, kjit_type type, __int128 value, kj_location location);
kj_texpr *kj_new_value(kj_scope *s, kj_value value, kj_location location);
/* A float; a double is rounded to the type. */
kj_texpr *kj_new_number(kj_scope *s, kjit_type type, double value, kj_location location);

/* ---- fold.c: arithmetic at compile time ---- */

/* Operands of one type (SHL and SHR: any integer count). NULL: not done at compile time. */
kj_texpr *kj_fold_unary(kj_scope *s, kjit_op op, const kj_texpr *x, kj_location location);
kj_texpr *kj_fold_binary(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                         kj_location location);
kj_texpr *kj_fold_compare(kj_scope *s, kjit_op op, const kj_texpr *x, const kj_texpr *y,
                          kj_location location);
/* Built-ins on constants of one type. */
kj_texpr *kj_fold_builtin(kj_scope *s, const kj_builtin *builtin, const kj_texprs *values,
                          kj_location location);
/* Decimal text of a wide integer. */
const char *kj_integer_text(kj_arena *arena, __int128 value);

#endif

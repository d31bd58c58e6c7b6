/* Generates debug information: source lines and, on request, variables.
 *
 * Lines: every instruction has its statement's location. A function that is inlined by kjit has its
 * own scope with the call's location. On a GPU the lines become .loc directives, on the CPU a line
 * table.
 *
 * Variables (KJIT_DEBUG_FULL): the stack frame has memory for each variable, which only the
 * debugger reads; every assignment also writes the value to this memory. For a variable in a slot,
 * this memory holds the address of the current thread's slot. The code stores the address when a
 * thread's iteration of a thread loop starts. */
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "lower/instruction.h"
#include "lower/debug.h"

enum {
  LINES_AS_DIRECTIVES = 3 /* DICompileUnit::DebugDirectivesOnly, for which the C API has no name */
};
/* the DW_ATE_* constants of DWARF 4, figure 24 */
enum { ENCODING_BOOLEAN = 2, ENCODING_FLOAT = 4, ENCODING_SIGNED = 5, ENCODING_UNSIGNED = 7 };

struct kl_debug {
  LLVMDIBuilderRef builder;
  bool is_full;
  LLVMMetadataRef unit, signature;
  LLVMMetadataRef *files;       /* indexed by source */
  LLVMMetadataRef *subprograms; /* indexed by instance */
  LLVMMetadataRef expression, dereference;
  /* the next list of statements is the body of a thread loop and has no separate scope */
  bool is_thread;
};

static bool is_full(const kl_lowering *l) { return l->debug && l->debug->is_full; }

bool kl_shows_variables(const kl_lowering *l) { return l->c->request->debug == KJIT_DEBUG_FULL; }

/* ---- files and functions ---- */

static LLVMMetadataRef get_file(kl_lowering *l, uint32_t index)
{
  struct kl_debug *d = l->debug;
  const kj_sources *sources = &l->c->module->sources;
  if (index >= sources->count) index = 0;
  if (d->files[index]) return d->files[index];
  const char *name =
    index < sources->count && sources->items[index].name ? sources->items[index].name : "kernel";
  const char *slash = strrchr(name, '/');
  size_t folder_length = slash ? (size_t)(slash - name) : 0;
  const char *folder = folder_length ? kj_copy_string(l->c->arena, name, folder_length)
                       : slash       ? "/"
                                     : ".";
  const char *base = slash ? slash + 1 : name;
  d->files[index] = LLVMDIBuilderCreateFile(d->builder, base, strlen(base), folder, strlen(folder));
  return d->files[index];
}

static void add_flag(kl_lowering *l, const char *name, unsigned value)
{
  LLVMMetadataRef number =
    LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(l->context), value, false));
  LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorWarning, name, strlen(name), number);
}

static LLVMDWARFEmissionKind emission_of(const kl_lowering *l)
{
  if (l->debug->is_full) return LLVMDWARFEmissionFull;
  return l->c->request->target.kind == KJ_TARGET_CPU ? LLVMDWARFEmissionLineTablesOnly
                                                     : (LLVMDWARFEmissionKind)LINES_AS_DIRECTIVES;
}

void kl_begin_debug(kl_lowering *l)
{
  static const char producer[] = "kjit";
  if (l->c->request->debug == KJIT_DEBUG_NONE) return;
  bool is_cpu = l->c->request->target.kind == KJ_TARGET_CPU;
  struct kl_debug *d = l->debug = KJ_NEW(l->c->arena, struct kl_debug);
  l->c->code->has_debug = true;
  add_flag(l, "Debug Info Version", LLVMDebugMetadataVersion());
  add_flag(l, "Dwarf Version", is_cpu ? 4 : 2); /* ptxas reads version 2 */
  d->builder = LLVMCreateDIBuilder(l->module);
  d->is_full = l->c->request->debug == KJIT_DEBUG_FULL;
  d->files = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, l->c->module->sources.count + 1);
  d->subprograms = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, l->c->instances.count + 1);
  LLVMMetadataRef file = get_file(l, l->c->request->kernel->decl->location.file);
  d->unit = LLVMDIBuilderCreateCompileUnit(d->builder, LLVMDWARFSourceLanguageC99, file, producer,
                                           sizeof producer - 1, !d->is_full, "", 0, 0, "", 0,
                                           emission_of(l), 0, false, false, "", 0, "", 0);
  d->signature = LLVMDIBuilderCreateSubroutineType(d->builder, file, NULL, 0, LLVMDIFlagZero);
  d->expression = LLVMDIBuilderCreateExpression(d->builder, NULL, 0);
  static uint64_t dereference[] = { 0x06 /* DW_OP_deref */ };
  d->dereference = LLVMDIBuilderCreateExpression(d->builder, dereference, 1);
}

void kl_finish_debug(kl_lowering *l)
{
  if (l->debug) LLVMDIBuilderFinalize(l->debug->builder);
}

void kl_end_debug(kl_lowering *l)
{
  if (l->debug && l->debug->builder) LLVMDisposeDIBuilder(l->debug->builder);
  l->debug = NULL;
}

static LLVMMetadataRef get_subprogram(kl_lowering *l, const kt_instance *instance)
{
  struct kl_debug *d = l->debug;
  LLVMMetadataRef *found = &d->subprograms[instance->id];
  if (*found) return *found;
  const ki_decl *decl = instance->function->decl;
  LLVMMetadataRef file = get_file(l, decl->location.file);
  *found =
    LLVMDIBuilderCreateFunction(d->builder, file, decl->name, strlen(decl->name), "", 0, file,
                                decl->location.line, d->signature, !instance->is_kernel, true,
                                decl->location.line, LLVMDIFlagZero, !d->is_full);
  return *found;
}

/* ---- locations ---- */

/* Returns the scope for a location. A line directive can assign the statement to another file than
 * its function. The scope is then a lexical block in that file. */
static LLVMMetadataRef scope_in_file(kl_lowering *l, const kl_frame *frame, kj_location location)
{
  if (location.file == frame->instance->function->decl->location.file) return frame->scope;
  return LLVMDIBuilderCreateLexicalBlockFile(l->debug->builder, frame->scope,
                                             get_file(l, location.file), 0);
}

static LLVMMetadataRef make_place(kl_lowering *l, const kl_frame *frame, kj_location location)
{
  return LLVMDIBuilderCreateDebugLocation(l->context, location.line, location.column,
                                          scope_in_file(l, frame, location), frame->inlined_at);
}

void kl_begin_debug_function(kl_lowering *l)
{
  if (!l->debug) return;
  const kt_instance *instance = l->frame->instance;
  l->frame->scope = get_subprogram(l, instance);
  LLVMSetSubprogram(l->function, l->frame->scope);
  LLVMSetCurrentDebugLocation2(l->builder,
                               make_place(l, l->frame, instance->function->decl->location));
}

LLVMMetadataRef kl_begin_debug_inline(kl_lowering *l, kl_frame *frame, kj_location call)
{
  if (!l->debug) return NULL;
  LLVMMetadataRef before = LLVMGetCurrentDebugLocation2(l->builder);
  frame->scope = get_subprogram(l, frame->instance);
  frame->inlined_at = call.line ? make_place(l, l->frame, call) : before;
  return before;
}

void kl_end_debug_inline(kl_lowering *l, LLVMMetadataRef before)
{
  if (l->debug) LLVMSetCurrentDebugLocation2(l->builder, before);
}

void kl_debug_statement(kl_lowering *l, kj_location location)
{
  if (l->debug && location.line)
    LLVMSetCurrentDebugLocation2(l->builder, make_place(l, l->frame, location));
}

/* Begins a list of statements. In a function, a list is the scope of the variables that are first
 * assigned in it. */
kl_debug_block kl_begin_debug_block(kl_lowering *l, const kt_stmts *stmts)
{
  kl_debug_block block = { 0 };
  if (!l->debug) return block;
  block.scope = l->frame->scope;
  block.place = LLVMGetCurrentDebugLocation2(l->builder);
  bool is_body = stmts->items == l->frame->instance->body.items || l->debug->is_thread;
  l->debug->is_thread = false;
  if (!l->debug->is_full || is_body || !stmts->count || !stmts->items[0]->location.line)
    return block;
  kj_location at = stmts->items[0]->location;
  l->frame->scope = LLVMDIBuilderCreateLexicalBlock(l->debug->builder, l->frame->scope,
                                                    get_file(l, at.file), at.line, at.column);
  return block;
}

void kl_end_debug_block(kl_lowering *l, const kl_debug_block *block)
{
  if (!l->debug) return;
  l->frame->scope = block->scope;
  LLVMSetCurrentDebugLocation2(l->builder, block->place);
}

/* ---- types ---- */

static uint64_t bits_of(kl_lowering *l, LLVMTypeRef type)
{
  return 8 * LLVMABISizeOfType(l->layout, type);
}

static LLVMMetadataRef basic_type(kl_lowering *l, const char *name, uint32_t bits,
                                  unsigned encoding)
{
  return LLVMDIBuilderCreateBasicType(l->debug->builder, name, strlen(name), bits, encoding,
                                      LLVMDIFlagZero);
}

static LLVMMetadataRef scalar_type(kl_lowering *l, kjit_type type)
{
  const char *name = kt_type_text(l->c, type);
  uint32_t bits = kl_scalar_bytes(l, type) * 8;
  if (type == KJIT_BOOL) return basic_type(l, name, 8, ENCODING_BOOLEAN);
  if (kl_is_float_type(l, type)) return basic_type(l, name, bits, ENCODING_FLOAT);
  return basic_type(l, name, bits,
                    kl_is_signed_type(l, type) ? ENCODING_SIGNED : ENCODING_UNSIGNED);
}

static LLVMMetadataRef list_type(kl_lowering *l, LLVMMetadataRef element, const int64_t *extents,
                                 uint32_t rank, uint64_t element_bits)
{
  LLVMMetadataRef ranges[KJ_MAX_RANK];
  uint64_t bits = element_bits;
  for (uint32_t d = 0; d < rank; d++) {
    ranges[d] = LLVMDIBuilderGetOrCreateSubrange(l->debug->builder, 0, extents[d]);
    bits *= (uint64_t)extents[d];
  }
  return LLVMDIBuilderCreateArrayType(l->debug->builder, bits, (uint32_t)element_bits, element,
                                      ranges, rank);
}

static LLVMMetadataRef pointer_type(kl_lowering *l, LLVMMetadataRef target)
{
  return LLVMDIBuilderCreatePointerType(l->debug->builder, target, 64, 64, 0, "", 0);
}

typedef struct member {
  const char *name;
  LLVMMetadataRef type;
  uint64_t bits, offset_bits;
} member;

static LLVMMetadataRef struct_type(kl_lowering *l, const char *name, const member *members,
                                   uint32_t count, uint64_t bits)
{
  LLVMMetadataRef file = get_file(l, 0),
                  *items = KJ_NEW_ARRAY(l->c->arena, LLVMMetadataRef, count + 1);
  for (uint32_t i = 0; i < count; i++)
    items[i] =
      LLVMDIBuilderCreateMemberType(l->debug->builder, l->debug->unit, members[i].name,
                                    strlen(members[i].name), file, 0, members[i].bits, 0,
                                    members[i].offset_bits, LLVMDIFlagZero, members[i].type);
  return LLVMDIBuilderCreateStructType(l->debug->builder, l->debug->unit, name, strlen(name), file,
                                       0, bits, 0, LLVMDIFlagZero, NULL, items, count, 0, NULL, "",
                                       0);
}

/* ---- types of aggregates ---- */

/* maximum nesting depth in the debug types of structs; it is limited because structs can contain
 * pointers to themselves */
enum { MOST_DEPTH = 6 };

static LLVMMetadataRef value_type(kl_lowering *l, kjit_type type, LLVMTypeRef held, int depth);

static LLVMMetadataRef bytes_type(kl_lowering *l, uint64_t bytes)
{
  int64_t extent = (int64_t)bytes;
  return list_type(l, basic_type(l, "u8", 8, ENCODING_UNSIGNED), &extent, 1, 8);
}

static const char *part_name(kl_lowering *l, const ki_type_info *info, uint32_t i)
{
  static const char *const complex_parts[] = { "real", "imag" }, *const lanes[] = { "x", "y", "z",
                                                                                    "w" };
  if (info->class_ == KJ_CLASS_STRUCT) return info->field_names[i];
  if (info->class_ == KJ_CLASS_COMPLEX) return complex_parts[i];
  return info->class_ == KJ_CLASS_VECTOR && info->count <= 4 ? lanes[i]
                                                             : kj_format(l->c->arena, "item%u", i);
}

/* Returns the debug type of an aggregate. held: the LLVM type of the value that the debugger shows;
 * NULL means that the value has the layout of memory. */
static LLVMMetadataRef parts_type(kl_lowering *l, kjit_type type, LLVMTypeRef held, int depth)
{
  const ki_type_info *info = kl_type_info(l, type);
  bool is_tuple = info->class_ == KJ_CLASS_TUPLE,
       is_held = held && LLVMGetTypeKind(held) == LLVMStructTypeKind;
  uint32_t count = is_tuple ? info->count : ki_component_count(l->c->types, type);
  uint64_t bits = held ? bits_of(l, held) : 8 * (uint64_t)info->size_bytes;
  if (is_tuple && !is_held) return bytes_type(l, bits / 8);
  member *members = KJ_NEW_ARRAY(l->c->arena, member, count + 1);
  for (uint32_t i = 0; i < count; i++) {
    ki_component part = is_tuple ? (ki_component){ .index = i, .type = info->items[i] }
                                 : ki_get_component(l->c->types, type, i);
    LLVMTypeRef part_held = is_held ? LLVMStructGetTypeAtIndex(held, i) : NULL;
    uint64_t offset = is_held ? LLVMOffsetOfElement(l->layout, held, i) : part.offset_bytes;
    uint64_t size =
      part_held ? bits_of(l, part_held) : 8 * (uint64_t)kl_type_info(l, part.type)->size_bytes;
    members[i] = (member){ part_name(l, info, i), value_type(l, part.type, part_held, depth + 1),
                           size, 8 * offset };
  }
  return struct_type(l, kt_type_text(l->c, type), members, count, bits);
}

static LLVMMetadataRef value_type(kl_lowering *l, kjit_type type, LLVMTypeRef held, int depth)
{
  if (ki_is_weak(type)) return scalar_type(l, type);
  const ki_type_info *info = kl_type_info(l, type);
  switch (KJ_AMONG(info->class_)) {
  case KJ_CLASS_BOOL:
  case KJ_CLASS_SIGNED:
  case KJ_CLASS_UNSIGNED:
  case KJ_CLASS_FLOAT: return scalar_type(l, type);
  case KJ_CLASS_COMPLEX:
  case KJ_CLASS_STRUCT:
  case KJ_CLASS_TUPLE: return parts_type(l, type, held, depth);
  case KJ_CLASS_VECTOR:
    /* a bool vector in a register has one bit for each lane */
    if (info->element == KJIT_BOOL && held) return bytes_type(l, bits_of(l, held) / 8);
    return parts_type(l, type, NULL, depth);
  case KJ_CLASS_POINTER:
    return pointer_type(l, depth < MOST_DEPTH ? value_type(l, info->element, NULL, depth + 1)
                                              : basic_type(l, "u8", 8, ENCODING_UNSIGNED));
  case KJ_CLASS_ARRAY:
    if (info->space != KJ_SPACE_VALUE || !info->rank) break;
    return list_type(l, value_type(l, info->element, NULL, depth + 1), info->extents, info->rank,
                     8 * (uint64_t)kl_type_info(l, info->element)->size_bytes);
  default: break;
  }
  return bytes_type(l, held ? bits_of(l, held) / 8 : info->size_bytes);
}

/* ---- variables ---- */

static bool is_shown(const kl_lowering *l, const kt_var *var)
{
  return is_full(l) && var->name && var->name[0] && var->location.line;
}

static kl_variable_state *state_of(kl_lowering *l, const kt_var *var)
{
  return &l->frame->states[var->index];
}

static LLVMMetadataRef type_of_value(kl_lowering *l, const kt_var *var, LLVMTypeRef type)
{
  return var->is_narrow ? basic_type(l, "index", 32, ENCODING_SIGNED)
                        : value_type(l, var->type, type, 0);
}

static LLVMMetadataRef describe(kl_lowering *l, const kt_var *var, LLVMMetadataRef type,
                                LLVMMetadataRef scope)
{
  struct kl_debug *d = l->debug;
  LLVMMetadataRef file = get_file(l, var->location.file);
  size_t length = strlen(var->name);
  if (var->kind == KJ_V_PARAM)
    return LLVMDIBuilderCreateParameterVariable(d->builder, get_subprogram(l, l->frame->instance),
                                                var->name, length, var->index + 1, file,
                                                var->location.line, type, true, LLVMDIFlagZero);
  return LLVMDIBuilderCreateAutoVariable(d->builder, scope, var->name, length, file,
                                         var->location.line, type, true, LLVMDIFlagZero, 0);
}

/* Declares a variable. storage is the memory that holds the value or, if is_address, the address of
 * the value. */
static void declare(kl_lowering *l, const kt_var *var, LLVMMetadataRef type, LLVMValueRef storage,
                    bool is_address)
{
  LLVMMetadataRef scope = var->is_slot ? get_subprogram(l, l->frame->instance) : l->frame->scope;
  LLVMMetadataRef place =
    LLVMDIBuilderCreateDebugLocation(l->context, var->location.line, var->location.column, scope,
                                     l->frame->inlined_at);
  LLVMDIBuilderInsertDeclareRecordAtEnd(l->debug->builder, storage, describe(l, var, type, scope),
                                        is_address ? l->debug->dereference : l->debug->expression,
                                        place, kl_here(l));
}

void kl_debug_alloca(kl_lowering *l, const kt_var *var, LLVMValueRef memory, LLVMTypeRef type)
{
  if (is_shown(l, var)) declare(l, var, type_of_value(l, var, type), memory, false);
}

/* Returns whether two variables come from the same variable in the source. On the CPU, the SIMT
 * pass creates copies of a variable that several regions of the kernel compute (pass/slots.c). */
static bool is_twin(const kt_var *a, const kt_var *b)
{
  bool is_same_place = a->location.line == b->location.line &&
                       a->location.column == b->location.column &&
                       a->location.file == b->location.file;
  return is_same_place && a->type == b->type && a->is_narrow == b->is_narrow && !a->is_slot &&
         !b->is_slot && strcmp(a->name, b->name) == 0;
}

static LLVMValueRef find_twin(kl_lowering *l, const kt_var *var)
{
  const kt_vars *locals = &l->frame->instance->locals;
  for (size_t i = 0; i < locals->count; i++) {
    const kt_var *other = locals->items[i];
    if (other != var && other->name && l->frame->states[other->index].shadow && is_twin(var, other))
      return l->frame->states[other->index].shadow;
  }
  return NULL;
}

void kl_debug_value(kl_lowering *l, const kt_var *var, LLVMValueRef value)
{
  if (!is_shown(l, var) || !value) return;
  kl_variable_state *state = state_of(l, var);
  if (!state->shadow) state->shadow = find_twin(l, var);
  if (!state->shadow) {
    state->shadow = kl_alloca(l, LLVMTypeOf(value), var->name);
    declare(l, var, type_of_value(l, var, LLVMTypeOf(value)), state->shadow, false);
  }
  kl_store(l, value, state->shadow);
}

/* Casts a pointer to an array's element 0 to the generic address space. */
static LLVMValueRef generic_pointer(kl_lowering *l, LLVMValueRef pointer)
{
  return LLVMTypeOf(pointer) == l->pointer ? pointer : kl_addrspacecast(l, pointer, l->pointer);
}

static void store_at(kl_lowering *l, LLVMValueRef shadow, uint64_t offset, LLVMValueRef value)
{
  LLVMValueRef at = kl_const64(l, (int64_t)offset);
  kl_store(l, value, kl_inbounds_gep(l, l->i8, shadow, &at, 1));
}

/* Returns the debug type struct { T *data; i64 shape[rank], strides[rank]; }. */
static LLVMMetadataRef array_type(kl_lowering *l, kjit_type type, uint32_t rank)
{
  kjit_type element = kl_type_info(l, type)->element;
  int64_t extent = rank;
  LLVMMetadataRef data = pointer_type(l, value_type(l, element, NULL, 0)),
                  numbers = list_type(l, scalar_type(l, KJIT_I64), &extent, 1, 64);
  member members[] = { { "data", data, 64, 0 },
                       { "shape", numbers, 64 * (uint64_t)rank, 64 },
                       { "strides", numbers, 64 * (uint64_t)rank, 64 + 64 * (uint64_t)rank } };
  return struct_type(l, kt_type_text(l->c, type), members, rank ? 3 : 1, 64 + 128 * (uint64_t)rank);
}

void kl_debug_array(kl_lowering *l, const kt_var *var, const kl_array_value *array)
{
  if (!is_shown(l, var)) return;
  kl_variable_state *state = state_of(l, var);
  uint32_t rank = kl_type_info(l, array->type)->rank;
  if (!state->shadow) {
    state->shadow = kl_alloca(l, LLVMArrayType2(l->i64, 1 + 2 * (uint64_t)rank), var->name);
    declare(l, var, array_type(l, array->type, rank), state->shadow, false);
  }
  store_at(l, state->shadow, 0, generic_pointer(l, array->pointer));
  for (uint32_t d = 0; d < rank; d++) {
    if (array->extents[d] || kl_type_info(l, array->type)->is_static)
      store_at(l, state->shadow, 8 + 8 * (uint64_t)d, kl_extent(l, array, d));
    if (array->strides[d])
      store_at(l, state->shadow, 8 + 8 * (uint64_t)(rank + d), kl_stride(l, array, d));
  }
}

/* Describes a shared, local or constant array by the address of its element 0. */
void kl_debug_storage(kl_lowering *l, const kt_var *var, LLVMValueRef pointer)
{
  const ki_type_info *info = kl_type_info(l, var->type);
  if (!is_shown(l, var) || !info->is_static) return;
  kl_variable_state *state = state_of(l, var);
  if (!state->shadow) {
    uint64_t element_bits = 8 * (uint64_t)kl_type_info(l, info->element)->size_bytes;
    LLVMMetadataRef element = value_type(l, info->element, NULL, 0);
    LLVMMetadataRef type =
      info->rank ? list_type(l, element, info->extents, info->rank, element_bits) : element;
    state->shadow = kl_alloca(l, l->pointer, var->name);
    declare(l, var, type, state->shadow, true);
  }
  kl_store(l, generic_pointer(l, pointer), state->shadow);
}

void kl_debug_thread(kl_lowering *l)
{
  if (!is_full(l)) return;
  const kt_instance *instance = l->frame->instance;
  l->debug->is_thread = true;
  for (size_t i = 0; i < instance->params.count + instance->locals.count; i++) {
    const kt_var *var = i < instance->params.count
                          ? instance->params.items[i]
                          : instance->locals.items[i - instance->params.count];
    if (!var->is_slot || !is_shown(l, var) || var->kind == KJ_V_LOCAL ||
        kl_is_array_type(l, var->type))
      continue;
    kl_variable_state *state = state_of(l, var);
    LLVMTypeRef held = var->is_narrow ? l->i32 : kl_register_type(l, var->type);
    if (!state->shadow) {
      state->shadow = kl_alloca(l, l->pointer, var->name);
      declare(l, var, type_of_value(l, var, held), state->shadow, true);
    }
    kl_store(l, l->target->slot_pointer(l, var), state->shadow);
  }
}

void kl_debug_parameters(kl_lowering *l)
{
  if (!is_full(l)) return;
  const kt_instance *instance = l->frame->instance;
  for (size_t i = 0; i < instance->params.count; i++) {
    const kt_var *param = instance->params.items[i];
    const kl_variable_state *state = state_of(l, param);
    if (!kl_is_array_type(l, param->type)) {
      kl_debug_value(l, param, state->value);
      continue;
    }
    kl_array_value unpacked;
    if (!state->array) unpacked = kl_unpack_array(l, param->type, state->value);
    kl_debug_array(l, param, state->array ? state->array : &unpacked);
  }
}

/* ---- positions, under the names that cuda-gdb uses ---- */

void kl_debug_position(kl_lowering *l, const char *name, LLVMValueRef *shadow,
                       LLVMValueRef const *values)
{
  if (!is_full(l)) return;
  if (!*shadow) {
    LLVMMetadataRef number = scalar_type(l, KJIT_U32), scope = get_subprogram(l, l->kernel);
    const member members[] = { { "x", number, 32, 0 },
                               { "y", number, 32, 32 },
                               { "z", number, 32, 64 } };
    const kj_location at = l->kernel->function->decl->location;
    *shadow = kl_alloca(l, LLVMArrayType2(l->i32, 3), name);
    LLVMMetadataRef var =
      LLVMDIBuilderCreateAutoVariable(l->debug->builder, scope, name, strlen(name),
                                      get_file(l, at.file), at.line,
                                      struct_type(l, "position", members, 3, 96), true,
                                      LLVMDIFlagArtificial, 0);
    LLVMMetadataRef place =
      LLVMDIBuilderCreateDebugLocation(l->context, at.line, at.column, scope, NULL);
    LLVMDIBuilderInsertDeclareRecordAtEnd(l->debug->builder, *shadow, var, l->debug->expression,
                                          place, kl_here(l));
  }
  for (unsigned d = 0; d < 3; d++) store_at(l, *shadow, 4 * d, kl_as_i32(l, values[d]));
}

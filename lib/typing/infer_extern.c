/* Calls of functions that are not kernel IR: their types are the C ABI's, all of them written down.
 */
#include "typing/infer.h"

#include "native/functions.h"

/* What kjit_call_function passes in its own way: small floats as their bits, what is made of others
 * by address. */
static bool goes_to_host(kj_scope *s, kjit_type type)
{
  const kj_type_info *info = kj_type(s->c->types, type);
  bool is_composed = info->class_ == KJ_CLASS_VECTOR || info->class_ == KJ_CLASS_STRUCT ||
                     info->class_ == KJ_CLASS_COMPLEX || info->class_ == KJ_CLASS_FLOAT;
  if (info->class_ != KJ_CLASS_TUPLE) return is_composed;
  for (uint32_t i = 0; i < info->count; i++)
    if (kj_is_array(s->c, info->items[i]) || kj_is_weak(info->items[i])) return false;
  return true;
}

void kj_check_c_type(kj_scope *s, kjit_type type, const char *what, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, type);
  if (s->c->request->has_record && goes_to_host(s, type)) return;
  bool is_number = info->class_ == KJ_CLASS_BOOL || info->class_ == KJ_CLASS_SIGNED ||
                   info->class_ == KJ_CLASS_UNSIGNED || type == KJIT_F32 || type == KJIT_F64;
  if (is_number || info->class_ == KJ_CLASS_POINTER || info->class_ == KJ_CLASS_VOID) return;
  const char *advice = type == KJIT_F16 || type == KJIT_BF16
                         ? "; its bits go as u16: `bitcast(u16, x)`"
                       : info->class_ == KJ_CLASS_STRUCT ? "; a pointer to it does"
                                                         : "";
  kj_fail(s->c, location, KJIT_ERROR_UNSUPPORTED,
          "%s is %s, which does not go to or from a C function%s", what, kj_type_text(s->c, type),
          advice);
}

static kj_texpr *bind_array(kj_scope *s, kj_texpr *array, kjit_type annotation,
                            const kj_decl *param, kj_location location)
{
  const kj_type_info *info = kj_type(s->c->types, array->type);
  if (info->space != KJ_SPACE_GLOBAL)
    kj_fail(s->c, location, KJIT_ERROR_TYPE, "`%s` takes an array in global memory: %s is none",
            param->name, kj_type_text(s->c, array->type));
  return kj_give_array_type(s, array, annotation);
}

/* Code that is to run has to be there. */
static void check_binding(kj_scope *s, const kj_function *function, kj_location location)
{
  const kj_compile_request *request = s->c->request;
  const kj_bound_extern *bound = function->bound;
  bool is_cpu = request->target.kind == KJ_TARGET_CPU,
       is_bound = bound && (is_cpu ? bound->host_function != NULL : bound->kind != KJ_CODE_NONE);
  if (is_bound || request->is_ahead) return;
  kj_fail(s->c, location, KJIT_ERROR_NAME,
          "the extern func `%s` has no %s: kjit_bind_extern gives it %s", function->decl->name,
          is_cpu ? "function on the CPU" : "code for GPUs",
          is_cpu ? "one of the host" : "PTX or LLVM IR");
}

void kj_bind_extern_call(kj_scope *s, const kj_function *function, kj_bound *bounds,
                         kj_texpr **arguments, const kj_expr *call)
{
  if (kj_is_library_name(function->decl->name))
    kj_fail(s->c, function->decl->location, KJIT_ERROR_NAME,
            "`%s` is extern and has the name of a function that generated code calls: it needs "
            "another name",
            function->decl->name);
  for (size_t i = 0; i < function->params.count; i++) {
    const kj_decl *param = function->params.items[i];
    kj_location location = i < call->args.count ? call->args.items[i]->location : call->location;
    const char *what =
      kj_format(s->arena, "argument `%s` of `%s`", param->name, function->decl->name);
    if (!param->type_expr || param->is_const || !arguments[i])
      kj_fail(s->c, location, KJIT_ERROR_TYPE,
              "`%s` is extern: a C function, whose parameters have types, or one that "
              "kjit_link_module finds in a library: `%s` is neither `%s: f32` nor linked",
              function->decl->name, param->name, param->name);
    kjit_type annotation = kj_infer_annotation(s->inference, function, bounds, i);
    if (kj_is_array(s->c, annotation))
      arguments[i] = bind_array(s, arguments[i], annotation, param, location);
    else kj_check_c_type(s, annotation, what, location);
    bounds[i] = (kj_bound){ .kind = KJ_BOUND_VALUE, .type = arguments[i]->type };
  }
  check_binding(s, function, call->location);
}

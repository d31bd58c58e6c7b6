/* Flattens tuple arguments of a launch, because a kernel takes the items in a tuple as separate
 * parameters. The shape is a string that describes the declared parameters: which of them are
 * tuples, and how many items each tuple has. Later steps of a launch see no tuples. */
#include <stdlib.h>

#include "launch/steps.h"

/* A parallel walk over the arguments and the shape's characters. */
typedef struct walk {
  const kjit_kernel *kernel;
  const char *sign, *end; /* rest of the shape */
  kjit_arg *items;        /* NULL if the items are only counted */
  size_t count;
  uint32_t depth; /* number of open tuples */
  kj_diagnostics *diagnostics;
} walk;

/* Reports an error at the current parameter or, after the last one, at the kernel. */
static kjit_status refuse(const walk *w, const char *expected, const char *got)
{
  const kjit_kernel *kernel = w->kernel;
  const ki_decl *decl =
    w->count < kernel->parameter_count ? kernel->parameters[w->count].decl : kernel->function->decl;
  return kj_error_at(w->diagnostics, kernel->module, decl->location, KJIT_ERROR_ARGUMENT,
                     "%s `%s`: expected %s, got %s",
                     decl->kind == KJ_DECL_PARAM ? "parameter" : "kernel", decl->name, expected,
                     got);
}

static kjit_status walk_list(walk *w, const kjit_arg *list, size_t count);

static kjit_status walk_tuple(walk *w, const kjit_arg *tuple)
{
  if (w->sign < w->end && *w->sign == KI_SHAPE_ARGUMENT)
    return refuse(w,
                  "an argument that is not a tuple (only a parameter with a tuple type such as "
                  "`box: (_, f32[:])` takes a tuple)",
                  "a tuple");
  if (w->sign == w->end || *w->sign == KI_SHAPE_CLOSE)
    return refuse(w, w->depth ? "the end of a tuple" : "no more arguments", "a tuple");
  if (tuple->count && !tuple->value.items)
    return refuse(w, "a tuple", "a tuple whose items are NULL");
  w->sign++;
  w->depth++;
  KJ_TRY(walk_list(w, tuple->value.items, tuple->count));
  if (w->sign == w->end || *w->sign != KI_SHAPE_CLOSE)
    return refuse(w, "a tuple with more items", "its end");
  w->sign++;
  w->depth--;
  return KJIT_OK;
}

static kjit_status walk_one(walk *w, const kjit_arg *argument)
{
  if (argument->kind == KJIT_ARG_TUPLE) return walk_tuple(w, argument);
  if (w->sign < w->end && *w->sign == KI_SHAPE_OPEN) return refuse(w, "a tuple", "a single item");
  if (w->sign == w->end || *w->sign == KI_SHAPE_CLOSE)
    return refuse(w, w->depth ? "a tuple with fewer items" : "no more arguments", "one more");
  w->sign++;
  if (w->items) w->items[w->count] = *argument;
  w->count++;
  return KJIT_OK;
}

static kjit_status walk_list(walk *w, const kjit_arg *list, size_t count)
{
  for (size_t i = 0; i < count; i++) KJ_TRY(walk_one(w, &list[i]));
  return KJIT_OK;
}

static walk start(const kjit_kernel *kernel, kj_diagnostics *diagnostics)
{
  const ki_function *function = kernel->function;
  return (walk){ .kernel = kernel,
                 .sign = function->shape.items,
                 .end = function->shape.items + function->shape.count,
                 .diagnostics = diagnostics };
}

/* Each tuple must match a level of the shape. The shape has a bounded length, so the walk also ends
 * for tuples that contain themselves. */
kjit_status kj_flatten_arguments(const kjit_kernel *kernel, const kjit_arg *arguments, size_t count,
                                 kj_diagnostics *diagnostics, kj_flat_arguments *flat)
{
  *flat = (kj_flat_arguments){ 0 };
  walk w = start(kernel, diagnostics);
  if (!kernel->function->has_tuples)
    return refuse(&w,
                  "arguments that are not tuples (only a parameter with a tuple type such as `box: "
                  "(_, f32[:])` takes a tuple)",
                  "a tuple");
  KJ_TRY(walk_list(&w, arguments, count));
  kjit_arg *items = malloc((w.count + 1) * sizeof *items);
  if (!items) return kj_error(diagnostics, KJIT_ERROR_MEMORY, "out of memory");
  *flat = (kj_flat_arguments){ .items = items, .count = w.count };
  w = start(kernel, diagnostics);
  w.items = items;
  return walk_list(&w, arguments, count);
}

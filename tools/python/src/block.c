/* Manages memory blocks. A block represents memory that an array shares with its views. It lists
 * the pending arrays that read this memory. Before kjit writes the memory, or passes it to code
 * that may write it, kjit computes these pending arrays. */
#include "expression.h"

#include <stdlib.h>

binding_block *binding_get_block(array_object *array)
{
  if (array->block) return array->block;
  array->block = calloc(1, sizeof *array->block);
  if (!array->block) return (binding_block *)PyErr_NoMemory();
  array->block->references = 1;
  return array->block;
}

binding_block *binding_retain_block(binding_block *block)
{
  block->references++;
  return block;
}

void binding_release_block(binding_block *block)
{
  if (block && !--block->references) free(block);
}

void binding_add_edge(binding_edge **list, binding_edge *edge, array_object *reader)
{
  edge->reader = reader;
  edge->next = *list;
  edge->place = list;
  if (*list) (*list)->place = &edge->next;
  *list = edge;
}

void binding_remove_edge(binding_edge *edge)
{
  if (!edge->place) return;
  *edge->place = edge->next;
  if (edge->next) edge->next->place = edge->place;
  edge->place = NULL;
}

int binding_share_block(array_object *view, array_object *owner)
{
  binding_block *block = binding_get_block(owner);
  if (!block) return -1;
  view->block = binding_retain_block(block);
  return 0;
}

int binding_is_shared(const array_object *array)
{
  return array->block && (array->block->is_open || array->block->lent);
}

/* Returns whether a pending array is referenced by anything else than the pending arrays that read
 * it. */
static int is_held(const array_object *array)
{
  return Py_REFCNT((PyObject *)array) > array->pending->reader_count;
}

/* Returns the array to compute so that `array` no longer reads a block. If only pending arrays
 * reference `array`, this is one of these arrays, because a single kernel then computes both. */
static array_object *find_outermost(array_object *array, uint64_t kept)
{
  while (!array->pending->busy && !is_held(array)) {
    const binding_edge *edge = array->pending->readers;
    while (edge &&
           (edge->reader->pending->is_spent || (edge->reader->pending->visit == kept && kept)))
      edge = edge->next;
    if (!edge) break;
    array = edge->reader;
  }
  return array;
}

int binding_compute_readers(binding_block *block, uint64_t kept)
{
  for (;;) {
    const binding_edge *edge = block->readers;
    while (edge && edge->reader->pending->is_spent && !edge->reader->pending->busy)
      edge = edge->next;
    if (!edge) return 0;
    /* Another thread is storing the elements of a spent array in other memory. The array itself is
     * not computed; kjit waits until the other thread's kernel has read the block. */
    int is_spent = edge->reader->pending->is_spent;
    array_object *array = is_spent ? edge->reader : find_outermost(edge->reader, kept);
    Py_INCREF((PyObject *)array);
    int outcome = is_spent ? expression_wait(array) : expression_evaluate(array);
    Py_DECREF((PyObject *)array);
    if (outcome < 0) return -1;
  }
}

int binding_before_write(array_object *array)
{
  if (array->pending && binding_evaluate(array)) return -1;
  if (expression_captures) {
    /* each launch of the captured graph writes the memory again */
    if (!binding_get_block(array)) return -1;
    array->block->is_open = 1;
  }
  return binding_compute_late_readers(array);
}

int binding_compute_late_readers(array_object *array)
{
  return array->block && array->block->readers ? binding_compute_readers(array->block, 0) : 0;
}

int binding_compute_all_late_readers(PyObject *const *args, Py_ssize_t count)
{
  for (Py_ssize_t i = 0; i < count; i++)
    if (Py_TYPE(args[i]) == binding_array_type &&
        binding_compute_late_readers((array_object *)args[i]))
      return -1;
  return 0;
}

/* The array is marked as open or lent before its readers are computed, so that no new readers are
 * added at the same time. */
int binding_open_block(array_object *array)
{
  if (array->pending && binding_evaluate(array)) return -1;
  if (!binding_get_block(array)) return -1;
  array->block->is_open = 1;
  return binding_compute_readers(array->block, 0);
}

int binding_lend_block(array_object *array)
{
  if (array->pending && binding_evaluate(array)) return -1;
  if (!binding_get_block(array)) return -1;
  array->block->lent++;
  if (!binding_compute_readers(array->block, 0)) return 0;
  array->block->lent--;
  return -1;
}

void binding_return_block(array_object *array)
{
  if (array->block && array->block->lent) array->block->lent--;
}

#include "route.h"

#include <stdlib.h>

static void release_route(route *self)
{
  if (--self->uses) return;
  Py_XDECREF(self->kept);
  Py_XDECREF((PyObject *)self->kernel);
  free(self);
}

void route_forget_all(dispatcher_object *self)
{
  while (self->route_count) release_route(self->routes[--self->route_count]);
}

static int is_taken_by(const route *self, const form_list *list)
{
  if (self->count != list->count) return 0;
  for (int i = 0; i < list->count; i++)
    if (self->rows[i].type != list->of[i].type || self->rows[i].facts != list->of[i].facts)
      return 0;
  return 1;
}

/* Finds the route for a combination of forms. Returns NULL if there is none. */
static route *find_route(dispatcher_object *self, const form_list *list)
{
  for (int i = 0; i < self->route_count; i++) {
    route *found = self->routes[i];
    if (!is_taken_by(found, list)) continue;
    if (found->generation != binding_generation) break;
    memmove(self->routes + 1, self->routes, (size_t)i * sizeof *self->routes);
    self->routes[0] = found;
    return found;
  }
  return NULL;
}

static void add_route(dispatcher_object *self, route *made)
{
  if (self->route_count == MOST_ROUTES) release_route(self->routes[--self->route_count]);
  memmove(self->routes + 1, self->routes, (size_t)self->route_count++ * sizeof *self->routes);
  self->routes[0] = made;
}

/* Reads the forms of all arguments. Returns 0 if an argument has no form. If an exception is then
 * set, the caller must not discard it (see binding_clear_usual). */
static int read_forms(const configured_object *self, PyObject *const *items, Py_ssize_t count,
                      form_list *list)
{
  list->context = self->launcher->kernel->context;
  list->takes_interfaces = !binding_has_several;
  list->interface_device = self->is_on_cpu ? KJIT_DEVICE_CPU : KJIT_DEVICE_CUDA;
  list->count = list->stored_count = 0;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!form_read(list, items[i])) return 0;
  return 1;
}

/* ---- launching by a route ---- */

static int wait_for(PyObject *object)
{
  PyObject *done = object ? PyObject_CallMethod(object, "synchronize", NULL) : Py_NewRef(Py_None);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

/* Converts the arguments and launches the kernel of the route. recorded: the value of
 * binding_recorded before the arguments were read. Returns 0, or -1 with an exception. */
static int launch_by(const configured_object *self, const launcher_object *launcher,
                     const route *taken, form_list *list, uint64_t recorded)
{
  kjit_arg args[FORM_MOST];
  Py_ssize_t count = 0;
  for (int i = 0; i < list->count; i++) {
    const route_row *row = &taken->rows[i];
    if (row->family == FORM_TUPLE || row->family == FORM_TYPE) continue;
    if (form_hand_over(list, &list->of[i], row->wanted, &args[count++])) return -1;
  }
  if (wait_for(self->before)) return -1;
  const kjit_launch_config *config = &launcher->config;
  if (config->stream &&
      binding_wait_for_producers(list->context, list->stored, list->stored_count, config->stream))
    return -1;
  for (int i = 0; i < list->count && recorded != binding_recorded; i++)
    if (list->of[i].family == FORM_ARRAY &&
        binding_compute_late_readers((array_object *)list->of[i].object))
      return -1;
  if (kernel_launch_taken(taken->kernel, config, args, count, list->stored, list->stored_count))
    return -1;
  return wait_for(self->after);
}

static int is_empty(PyObject *list) { return list && PyList_Check(list) && !PyList_Size(list); }

int route_try(configured_object *self, PyObject *const *items, Py_ssize_t count)
{
  if (!self->launcher || !self->dispatcher->route_count || !is_empty(self->callbacks) ||
      !is_empty(self->dispatcher->extensions))
    return 0;
  if (launcher_make_ready(self->launcher)) return -1;
  form_list list;
  uint64_t recorded = binding_recorded;
  /* another thread may replace the launcher meanwhile */
  launcher_object *launcher = (launcher_object *)Py_NewRef((PyObject *)self->launcher);
  int is_read = read_forms(self, items, count, &list);
  route *taken = is_read ? find_route(self->dispatcher, &list) : NULL;
  int outcome = !is_read && PyErr_Occurred() ? -1 : 0;
  if (taken) {
    taken->uses++;
    int is_failed =
      kernel_make_ready(taken->kernel) || launch_by(self, launcher, taken, &list, recorded);
    outcome = is_failed ? -1 : 1;
    release_route(taken);
  }
  Py_DECREF((PyObject *)launcher);
  form_free(&list);
  return outcome;
}

/* ---- storing a route ---- */

/* Reads the conversion of argument i: a type's name in wanted, or None. Returns 0 if the route
 * cannot be stored. */
static int read_wanted(form_list *list, int *at, PyObject *wanted, route *made)
{
  form_argument *argument = &list->of[*at];
  route_row *row = &made->rows[(*at)++];
  *row = (route_row){ argument->type, argument->facts, argument->family, KJIT_VOID };
  if (argument->family == FORM_TUPLE) {
    Py_ssize_t count = PyTuple_Check(wanted) ? PyTuple_Size(wanted) : -1;
    if (count != (Py_ssize_t)argument->facts) return 0;
    for (Py_ssize_t i = 0; i < count; i++)
      if (!read_wanted(list, at, PyTuple_GetItem(wanted, i), made)) return 0;
    return 1;
  }
  if (form_has_fields(argument)) {
    row->wanted = binding_find_record(list->context, argument->object);
    return row->wanted != KJIT_VOID;
  }
  if (wanted == Py_None) return 1;
  kjit_arg arg;
  return binding_parse_element(list->context, wanted, &row->wanted) &&
         argument->family == FORM_NUMBER && form_convert(&argument->as.number, row->wanted, &arg);
}

/* Returns the objects whose addresses identify a form. */
static PyObject *list_kept(const form_list *list)
{
  PyObject *kept = PyTuple_New(2 * (Py_ssize_t)list->count);
  for (int i = 0; kept && i < list->count; i++) {
    const form_argument *argument = &list->of[i];
    PyObject *object = argument->family == FORM_TYPE ? argument->object : Py_None;
    PyTuple_SetItem(kept, 2 * i, Py_NewRef((PyObject *)argument->type));
    PyTuple_SetItem(kept, 2 * i + 1, Py_NewRef(object));
  }
  return kept;
}

static route *make_route(form_list *list, PyObject *wanted, PyObject *kernel)
{
  route *made = calloc(1, sizeof *made + (size_t)list->count * sizeof *made->rows);
  if (!made) return NULL;
  made->uses = 1;
  made->generation = binding_generation;
  made->count = list->count;
  int at = 0, is_right = 1;
  Py_ssize_t count = PyTuple_Size(wanted);
  for (Py_ssize_t i = 0; is_right && i < count; i++)
    is_right = at < list->count && read_wanted(list, &at, PyTuple_GetItem(wanted, i), made);
  made->kept = is_right && at == list->count ? list_kept(list) : NULL;
  if (!made->kept) {
    PyErr_Clear();
    release_route(made);
    return NULL;
  }
  made->kernel = (kernel_object *)Py_NewRef(kernel);
  return made;
}

PyObject *route_keep(PyObject *object, PyObject *given)
{
  configured_object *self = (configured_object *)object;
  PyObject *args, *wanted, *kernel;
  if (!PyArg_ParseTuple(given, "O!O!O!", &PyTuple_Type, &args, &PyTuple_Type, &wanted,
                        binding_kernel_type, &kernel))
    return NULL;
  Py_ssize_t count = PyTuple_Size(args);
  if (!self->launcher || count > FORM_MOST || PyTuple_Size(wanted) != count ||
      launcher_make_ready(self->launcher) || kernel_make_known((kernel_object *)kernel)) {
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
  }
  PyObject *items[FORM_MOST];
  for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(args, i); /* borrowed */
  form_list list;
  int is_read = read_forms(self, items, count, &list);
  if (is_read && !find_route(self->dispatcher, &list)) {
    route *made = make_route(&list, wanted, kernel);
    if (made) add_route(self->dispatcher, made);
  }
  form_free(&list);
  if (!is_read && PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

/* Reads the forms of arguments (see form.h), and converts arguments whose forms are known. */
#include "form.h"

#include <stddef.h>
#include <structmember.h>

/* ---- objects that contain a kjit array ---- */

static PyTypeObject *held_type;

/* Base class of kjit.cuda's device arrays and records. */
typedef struct held_object {
  PyObject_HEAD PyObject *own; /* the kjit.Array */
  PyObject *dtype;             /* NumPy dtype */
} held_object;

static void free_held(PyObject *object)
{
  held_object *self = (held_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  Py_CLEAR(self->own);
  Py_CLEAR(self->dtype);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static PyMemberDef held_members[] = {
  { "_own", T_OBJECT_EX, offsetof(held_object, own), 0, NULL },
  { "dtype", T_OBJECT_EX, offsetof(held_object, dtype), 0, "NumPy's dtype of the elements" },
  { NULL, 0, 0, 0, NULL },
};
static PyType_Slot held_slots[] = {
  { Py_tp_dealloc, (void *)free_held },
  { Py_tp_members, held_members },
  { Py_tp_doc, (void *)"Base class of kjit.cuda's arrays and records." },
  { 0, NULL },
};
static PyType_Spec held_spec = { "kjit._kjit.Held", sizeof(held_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, held_slots };

/* ---- cache of classes ---- */

/* How objects of a class are read. Each reader produces a form of one family. */
typedef enum form_reader {
  READ_UNKNOWN, /* the form depends on the object */
  READ_NUMBER,
  READ_ARRAY,
  READ_HELD,
  READ_HOST,
  READ_MAPPED,
  READ_TUPLE,
  READ_TYPE,
  READ_NOTHING
} form_reader;

typedef struct known_class {
  PyTypeObject *type; /* retained */
  form_reader reader;
  kjit_type number;
} known_class;

enum { CLASSES = 64 };
static known_class classes[CLASSES]; /* indexed by a hash of the address */
/* classes of kjit.cuda: NumPy arrays in pinned and in mapped memory, and types */
static PyTypeObject *pinned_class, *mapped_class, *type_class;

static kjit_type find_python_number(PyTypeObject *type)
{
  return type == &PyLong_Type      ? KJIT_I64
         : type == &PyFloat_Type   ? KJIT_F64
         : type == &PyBool_Type    ? KJIT_BOOL
         : type == &PyComplex_Type ? KJIT_C128
                                   : KJIT_VOID;
}

static int is_numpy_array(PyTypeObject *type)
{
  PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"); /* borrowed */
  PyObject *found = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
  Py_XDECREF(found);
  PyErr_Clear();
  return found == (PyObject *)type;
}

static form_reader find_reader(PyTypeObject *type, kjit_type *number)
{
  *number = find_python_number(type);
  if (*number != KJIT_VOID) return READ_NUMBER;
  if (type == binding_array_type) return READ_ARRAY;
  if (PyType_IsSubtype(type, held_type)) return READ_HELD;
  if (PyType_IsSubtype(type, &PyTuple_Type)) return READ_TUPLE;
  if (type == &PyType_Type || (type_class && PyType_IsSubtype(type, type_class))) return READ_TYPE;
  if (!form_knows_numpy()) return READ_UNKNOWN;
  *number = form_find_scalar_class(type);
  if (*number != KJIT_VOID) return READ_NUMBER;
  if (type == mapped_class) return READ_MAPPED;
  if (mapped_class && PyType_IsSubtype(type, mapped_class)) return READ_NOTHING;
  return type == pinned_class || is_numpy_array(type) ? READ_HOST : READ_UNKNOWN;
}

/* Returns a copy, because other code that runs here may replace the class in the cache. */
static known_class find_class(PyTypeObject *type)
{
  known_class *place = &classes[((uintptr_t)type >> 4 ^ (uintptr_t)type >> 10) % CLASSES];
  if (place->type == type) return *place;
  known_class found = { .type = type };
  found.reader = find_reader(type, &found.number);
  PyTypeObject *old = place->type;
  *place = found;
  Py_INCREF((PyObject *)type);
  Py_XDECREF((PyObject *)old);
  return found;
}

/* ---- reading ---- */

enum { LAYOUT_C = 1, LAYOUT_F = 2 };

/* Returns the orders in which the elements of a tensor are contiguous, by NumPy's definition. */
static unsigned find_layout(const kjit_tensor *tensor)
{
  if (!tensor->strides) {
    int large = 0;
    for (int i = 0; i < tensor->rank; i++) large += tensor->shape[i] != 1;
    return LAYOUT_C | (large < 2 ? LAYOUT_F : 0);
  }
  unsigned layout = LAYOUT_C | LAYOUT_F;
  int64_t forward = 1, backward = 1;
  for (int i = 0; i < tensor->rank; i++) {
    if (!tensor->shape[i]) return LAYOUT_C | LAYOUT_F;
    int last = tensor->rank - 1 - i;
    if (tensor->shape[i] != 1 && tensor->strides[i] != forward) layout &= ~(unsigned)LAYOUT_F;
    if (tensor->shape[last] != 1 && tensor->strides[last] != backward)
      layout &= ~(unsigned)LAYOUT_C;
    forward *= tensor->shape[i];
    backward *= tensor->shape[last];
  }
  return layout;
}

/* Packs an array's properties into one number. number and dtype identify the element type. */
static uint64_t pack_facts(uint64_t number, uint64_t dtype, int rank, unsigned layout)
{
  return number << 32 | dtype << 16 | (uint64_t)rank << 4 | layout;
}

static int read_own(form_argument *argument, PyObject *own, uint32_t dtype)
{
  if (Py_TYPE(own) != binding_array_type) return 0;
  array_object *array = (array_object *)own;
  /* kernel launches have to check read-only arrays, so such arrays have no form */
  if (array->is_read_only) return 0;
  if (binding_before_write(array)) {
    binding_clear_usual(); /* the general conversion raises the exception again */
    return 0;
  }
  const kjit_tensor *tensor = kjit_get_tensor(array->array);
  if (!tensor || array->context->generation != binding_generation) return 0;
  argument->family = FORM_ARRAY;
  argument->object = own;
  argument->facts =
    pack_facts(kjit_get_array_element(array->array), dtype, tensor->rank, find_layout(tensor));
  return 1;
}

static int read_held(form_list *list, form_argument *argument, PyObject *object)
{
  const held_object *self = (const held_object *)object;
  if (!self->own || !self->dtype) return 0;
  uint32_t dtype = form_find_dtype(list->context, object, self->dtype);
  return dtype && read_own(argument, self->own, dtype);
}

/* Reads a NumPy array in mapped memory, which contains its kjit array. Views of such an array do
 * not contain a kjit array. */
static int read_mapped(form_argument *argument, PyObject *object)
{
  PyObject *own = PyObject_GetAttrString(object, "_own");
  int is_read = own && read_own(argument, own, 0);
  Py_XDECREF(own); /* the object still holds a reference to the array */
  binding_clear_usual();
  return is_read;
}

/* Returns the next free storage. An argument needs at most one. */
static binding_argument *add_storage(form_list *list)
{
  binding_argument *storage = &list->stored[list->stored_count++];
  binding_begin_argument(storage);
  return storage;
}

static int is_multiple(int64_t value, int64_t of) { return value % of == 0; }

static int fill_host_tensor(const form_numpy_array *array, const form_dtype *dtype,
                            binding_argument *storage)
{
  kjit_tensor *tensor = &storage->tensor;
  *tensor = dtype->element;
  tensor->data = array->data;
  tensor->rank = array->rank;
  tensor->shape = storage->shape;
  tensor->device_type = KJIT_DEVICE_CPU;
  for (int i = 0; i < array->rank; i++) {
    storage->shape[i] = array->extents[i];
    if (array->extents[i] > 1 && !is_multiple(array->strides[i], dtype->size_bytes)) return 0;
    storage->strides[i] = array->strides[i] / dtype->size_bytes;
  }
  if (!(array->flags & FORM_NUMPY_C)) tensor->strides = storage->strides;
  return 1;
}

/* Reads the form of a NumPy array. Returns 0 if the array is read-only, not aligned or in another
 * byte order. */
static int read_host(form_list *list, form_argument *argument, PyObject *object)
{
  const form_numpy_array *array = (const form_numpy_array *)object;
  int needed = FORM_NUMPY_ALIGNED | FORM_NUMPY_WRITEABLE;
  if ((array->flags & needed) != needed || array->rank > BINDING_MAX_RANK) return 0;
  uint32_t number = form_find_dtype(list->context, object, array->dtype);
  const form_dtype *dtype = number ? form_get_dtype(number) : NULL;
  if (!dtype || !dtype->is_taken ||
      !is_multiple((int64_t)(intptr_t)array->data, dtype->alignment_bytes))
    return 0;
  binding_argument *storage = add_storage(list);
  if (!fill_host_tensor(array, dtype, storage)) return 0;
  argument->family = FORM_HOST;
  argument->as.storage = storage;
  unsigned layout =
    (array->flags & FORM_NUMPY_C ? LAYOUT_C : 0) | (array->flags & FORM_NUMPY_F ? LAYOUT_F : 0);
  argument->facts = pack_facts(dtype->has_fields, number, array->rank, layout);
  return 1;
}

static void finish_tensor(form_argument *argument, form_family family, binding_argument *storage)
{
  const kjit_tensor *tensor = &storage->tensor;
  argument->family = family;
  argument->as.storage = storage;
  argument->facts = pack_facts((uint64_t)tensor->code << 8 | tensor->bits, tensor->lanes,
                               tensor->rank, find_layout(tensor));
}

static int read_foreign(form_list *list, form_argument *argument, PyObject *object)
{
  binding_argument *storage = add_storage(list);
  int looked = binding_look(list->context, object, storage);
  if (looked > 0) finish_tensor(argument, FORM_LOOKED, storage);
  else if (!looked && list->takes_interfaces &&
           binding_read_interface(object, list->interface_device, storage)) {
    finish_tensor(argument, FORM_INTERFACE, storage);
    looked = 1;
  }
  binding_clear_usual(); /* the general conversion raises the exception again */
  return looked > 0;
}

static int read_number(form_argument *argument, PyObject *object, kjit_type type)
{
  argument->family = FORM_NUMBER;
  if (!form_read_number(object, type, &argument->as.number)) return 0;
  argument->facts = argument->as.number.type;
  return 1;
}

static int read_tuple(form_list *list, form_argument *argument, PyObject *tuple)
{
  Py_ssize_t count = PyTuple_Size(tuple);
  argument->family = FORM_TUPLE;
  argument->facts = (uint64_t)count;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *item = PyTuple_GetItem(tuple, i); /* borrowed */
    if (find_class(Py_TYPE(item)).reader == READ_TYPE || !form_read(list, item)) return 0;
  }
  return 1;
}

int form_read(form_list *list, PyObject *object)
{
  if (list->count == FORM_MOST) return 0;
  form_argument *argument = &list->of[list->count++];
  const known_class known = find_class(Py_TYPE(object));
  argument->type = Py_TYPE(object);
  argument->object = object;
  switch (known.reader) {
  case READ_NUMBER: return read_number(argument, object, known.number);
  case READ_ARRAY: return read_own(argument, object, 0);
  case READ_HELD: return read_held(list, argument, object);
  case READ_HOST: return read_host(list, argument, object);
  case READ_MAPPED: return read_mapped(argument, object);
  case READ_TUPLE: return read_tuple(list, argument, object);
  case READ_TYPE:
    argument->family = FORM_TYPE;
    argument->facts = (uint64_t)(uintptr_t)object;
    return 1;
  case READ_NOTHING: return 0;
  default: return read_foreign(list, argument, object);
  }
}

/* ---- converting arguments ---- */

int form_has_fields(const form_argument *argument)
{
  return argument->family == FORM_HOST && argument->facts >> 32;
}

/* Converts an array of another context, such as the context for kernels without checks. */
static int hand_over_foreign(form_list *list, form_argument *argument, kjit_arg *arg)
{
  binding_argument *storage = add_storage(list);
  argument->as.storage = storage;
  return binding_take_argument(list->context, argument->object, NULL, storage, arg);
}

int form_hand_over(form_list *list, form_argument *argument, kjit_type type, kjit_arg *arg)
{
  switch (argument->family) {
  case FORM_NUMBER:
    if (form_convert(&argument->as.number, type == KJIT_VOID ? argument->as.number.type : type,
                     arg))
      return 0;
    PyErr_SetString(PyExc_SystemError,
                    "internal error: a cached launch converts a number to an unsupported type");
    return -1;
  case FORM_ARRAY: {
    array_object *array = (array_object *)argument->object;
    if (array->context != list->context) return hand_over_foreign(list, argument, arg);
    *arg = binding_pass_array(array);
    return 0;
  }
  default:
    *arg = type == KJIT_VOID ? kjit_arg_tensor(&argument->as.storage->tensor)
                             : kjit_arg_elements(type, &argument->as.storage->tensor);
    return 0;
  }
}

void form_free(form_list *list)
{
  for (int i = 0; i < list->stored_count; i++) binding_free_argument(&list->stored[i]);
}

/* ---- the module ---- */

static void know(PyTypeObject **place, PyObject *type)
{
  binding_set((PyObject **)(void *)place, Py_NewRef(type));
}

/* know_classes(pinned, mapped, type): sets the classes of kjit.cuda whose objects are read here. */
static PyObject *know_classes(PyObject *module, PyObject *args)
{
  (void)module;
  PyObject *pinned, *mapped, *type;
  if (!PyArg_ParseTuple(args, "O!O!O!", &PyType_Type, &pinned, &PyType_Type, &mapped, &PyType_Type,
                        &type))
    return NULL;
  know(&pinned_class, pinned);
  know(&mapped_class, mapped);
  know(&type_class, type);
  for (int i = 0; i < CLASSES; i++) {
    Py_CLEAR(classes[i].type);
    classes[i].reader = READ_UNKNOWN;
  }
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  { "know_classes", know_classes, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int form_add(PyObject *module)
{
  held_type = binding_make_type(module, &held_spec);
  return held_type ? PyModule_AddFunctions(module, functions) : -1;
}

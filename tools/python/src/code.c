/* Inspection of compiled kernels, and compilation of code for inspection. */
#include "binding.h"

static const struct stage_row {
  const char *name;
  int is_text;
} stages[KJIT_STAGE_COUNT] = {
#define STAGE_ROW(name, text, is_text, what) [KJIT_STAGE_##name] = { text, is_text },
  KJIT_STAGES(STAGE_ROW)
#undef STAGE_ROW
};

static int find_stage(const char *name, kjit_stage *stage)
{
  for (int i = 0; i < KJIT_STAGE_COUNT; i++)
    if (!strcmp(stages[i].name, name)) {
      *stage = (kjit_stage)i;
      return 0;
    }
  PyObject *known = PyUnicode_FromString("");
  for (int i = 0; known && i < KJIT_STAGE_COUNT; i++)
    binding_set(&known, PyUnicode_FromFormat("%U%s%s", known, i ? ", " : "", stages[i].name));
  if (known)
    PyErr_Format(PyExc_ValueError, "there is no stage '%s'; the stages are %U", name, known);
  Py_XDECREF(known);
  return -1;
}

static kjit_kernel *find_kernel(module_object *module, const char *name)
{
  kjit_kernel *kernel = NULL;
  kjit_status status = kjit_get_kernel(module->module, name, &kernel);
  return binding_finish(module->context, status) ? NULL : kernel;
}

/* Converts the result of a compilation to a Python object and frees it. */
static PyObject *take_code(module_object *module, kjit_status status, kjit_stage stage, void *code,
                           size_t size)
{
  PyObject *result = NULL;
  if (!binding_finish(module->context, status))
    result = stages[stage].is_text ? PyUnicode_DecodeUTF8(code, (Py_ssize_t)size, "replace")
                                   : PyBytes_FromStringAndSize(code, (Py_ssize_t)size);
  kjit_free(module->context->context, code);
  return result;
}

/* compile_code(module, name, signature, stage, target, facts, checks, debug): returns a string or
 * bytes. */
static PyObject *compile_code(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object;
  const char *name, *signature, *stage_name;
  kjit_compile_options options = { .size_bytes = sizeof options };
  int debug;
  if (!PyArg_ParseTuple(args, "O!ssszzIi", binding_module_type, &object, &name, &signature,
                        &stage_name, &options.target, &options.facts, &options.checks, &debug))
    return NULL;
  options.debug = (kjit_debug)debug;
  module_object *module = (module_object *)object;
  kjit_stage stage;
  kjit_kernel *kernel = find_stage(stage_name, &stage) ? NULL : find_kernel(module, name);
  if (!kernel) return NULL;
  void *code = NULL;
  size_t size = 0;
  kjit_status status;
  BINDING_LONG(module->context,
               status = kjit_compile(kernel, signature, &options, stage, &code, &size),
               .what = "compile", .name = name);
  if (status != KJIT_OK) code = NULL;
  return take_code(module, status, stage, code, size);
}

static PyObject *make_specialization(const kjit_specialization_info *info)
{
  unsigned long long compile_time_ns = info->infer_time_ns;
  compile_time_ns += info->lower_time_ns;
  compile_time_ns += info->optimize_time_ns;
  compile_time_ns += info->emit_time_ns;
  return Py_BuildValue("{sssssssIsIsIsIsIsisKsKsKsIsIsKsi}", "signature", info->signature, "facts",
                       info->facts, "target", info->target, "registers", info->registers,
                       "shared_bytes", info->shared_bytes, "local_bytes", info->local_bytes,
                       "constant_bytes", info->constant_bytes, "is_cooperative",
                       info->is_cooperative, "max_threads", info->max_threads, "launches",
                       (unsigned long long)info->launches, "code_bytes",
                       (unsigned long long)info->code_bytes, "compile_time_ns", compile_time_ns,
                       "stack_bytes", info->stack_bytes, "vector_bits", info->vector_bits,
                       "block_bytes", (unsigned long long)info->block_bytes, "is_plain",
                       info->is_plain);
}

/* list_specializations(module, name): returns a dictionary for each specialization, in the order of
 * compilation. */
static PyObject *list_specializations(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object;
  const char *name;
  if (!PyArg_ParseTuple(args, "O!s", binding_module_type, &object, &name)) return NULL;
  module_object *module = (module_object *)object;
  kjit_kernel *kernel = find_kernel(module, name);
  PyObject *list = kernel ? PyList_New(0) : NULL;
  kjit_specialization *specialization;
  for (size_t i = 0; list && (specialization = kjit_get_specialization(kernel, i)); i++) {
    kjit_specialization_info info = { .size_bytes = sizeof info };
    kjit_status status = kjit_get_specialization_info(specialization, &info);
    PyObject *row = binding_finish(module->context, status) ? NULL : make_specialization(&info);
    if (!row || PyList_Append(list, row)) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/* specialize(module, name, signature, device): compiles a kernel ahead of its launches. */
static PyObject *specialize(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object, *place;
  const char *name, *signature;
  if (!PyArg_ParseTuple(args, "O!ssO", binding_module_type, &object, &name, &signature, &place))
    return NULL;
  module_object *module = (module_object *)object;
  kjit_kernel *kernel = find_kernel(module, name);
  kjit_device *device = kernel ? binding_get_device(module->context, place) : NULL;
  if (!device) return NULL;
  kjit_specialization *specialization;
  kjit_status status;
  BINDING_LONG(module->context,
               status = kjit_specialize(kernel, device, signature, &specialization),
               .what = "compile", .name = name, .device = device);
  if (binding_finish(module->context, status)) return NULL;
  Py_RETURN_NONE;
}

/* occupancy(module, name, signature, block, shared_bytes): returns the number of blocks of a
 * cooperative launch for the latest specialization with these types. */
static PyObject *get_occupancy(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object;
  const char *name, *signature;
  uint32_t block[3];
  unsigned long long shared_bytes;
  if (!PyArg_ParseTuple(args, "O!ss(III)K", binding_module_type, &object, &name, &signature,
                        &block[0], &block[1], &block[2], &shared_bytes))
    return NULL;
  module_object *module = (module_object *)object;
  kjit_kernel *kernel = find_kernel(module, name);
  if (!kernel) return NULL;
  kjit_specialization *one, *found = NULL;
  for (size_t i = 0; (one = kjit_get_specialization(kernel, i)); i++) {
    kjit_specialization_info info = { .size_bytes = sizeof info };
    kjit_status status = kjit_get_specialization_info(one, &info);
    if (binding_finish(module->context, status)) return NULL;
    if (!strcmp(info.signature, signature)) found = one;
  }
  if (!found)
    return binding_fail(KJIT_ERROR_ARGUMENT, "%s was not compiled for (%s)", name, signature);
  kjit_occupancy occupancy = { .size_bytes = sizeof occupancy };
  kjit_status status;
  BINDING_UNLOCKED(module->context,
                   status = kjit_get_occupancy(found, block, shared_bytes, &occupancy));
  if (binding_finish(module->context, status)) return NULL;
  return PyLong_FromUnsignedLongLong(occupancy.max_cooperative_blocks);
}

static kjit_function *find_function(module_object *module, const char *name)
{
  kjit_function *function = NULL;
  kjit_status status = kjit_get_function(module->module, name, &function);
  return binding_finish(module->context, status) ? NULL : function;
}

/* compile_function(module, name, signature, symbol, stage, target, debug): compiles a func as a C
 * function for other code. Returns a string or bytes. */
static PyObject *compile_function(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object;
  const char *name, *signature, *symbol, *stage_name;
  kjit_compile_options options = { .size_bytes = sizeof options };
  int debug;
  if (!PyArg_ParseTuple(args, "O!sszszi", binding_module_type, &object, &name, &signature, &symbol,
                        &stage_name, &options.target, &debug))
    return NULL;
  options.debug = (kjit_debug)debug;
  module_object *module = (module_object *)object;
  kjit_stage stage;
  kjit_function *function = find_stage(stage_name, &stage) ? NULL : find_function(module, name);
  if (!function) return NULL;
  void *code = NULL;
  size_t size = 0;
  kjit_status status;
  BINDING_LONG(module->context,
               status =
                 kjit_compile_function(function, signature, symbol, &options, stage, &code, &size),
               .what = "compile", .name = name);
  if (status != KJIT_OK) code = NULL;
  return take_code(module, status, stage, code, size);
}

/* get_result_type(module, name, signature): returns the type name, or "void". */
static PyObject *get_result_type(PyObject *unused, PyObject *args)
{
  (void)unused;
  PyObject *object;
  const char *name, *signature;
  if (!PyArg_ParseTuple(args, "O!ss", binding_module_type, &object, &name, &signature)) return NULL;
  module_object *module = (module_object *)object;
  kjit_function *function = find_function(module, name);
  kjit_type type = KJIT_VOID;
  kjit_status status = KJIT_OK;
  if (!function) return NULL;
  BINDING_UNLOCKED(module->context, status = kjit_get_result_type(function, signature, &type));
  if (binding_finish(module->context, status)) return NULL;
  if (type == KJIT_VOID) return PyUnicode_FromString("void");
  char *text = kjit_copy_type_text(module->context->context, type);
  PyObject *result = text ? PyUnicode_FromString(text) : PyErr_NoMemory();
  kjit_free(module->context->context, text);
  return result;
}

static PyMethodDef functions[] = {
  { "compile_function", compile_function, METH_VARARGS, NULL },
  { "get_result_type", get_result_type, METH_VARARGS, NULL },
  { "compile_code", compile_code, METH_VARARGS, NULL },
  { "list_specializations", list_specializations, METH_VARARGS, NULL },
  { "specialize", specialize, METH_VARARGS, NULL },
  { "occupancy", get_occupancy, METH_VARARGS, NULL },
  { NULL, NULL, 0, NULL },
};

int binding_add_code(PyObject *module) { return PyModule_AddFunctions(module, functions); }

/* Random modules in which funcs, extern funcs and kernels have few names, linked in random graphs.
 * Each extern func is bound to a C function and to LLVM IR or PTX of its own, or to nothing. What a
 * kernel computes is compared with a model that knows every function by its identity and never by
 * its name: compiled again, from the disk cache, and after the bindings of equal modules were
 * exchanged. The PTX is checked, too: kernels with constant arguments fold to their results.
 * RUN: rm -rf %t && %programs/linked_names %t 60
 * RUN: %if cuda %{ %programs/linked_names %t 30 cuda %}
 */
#include <kjit/kjit.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kjit_context *context;
static uint64_t state;
static uint64_t seed;

static void fail(const char *what, int line)
{
  char *text = context ? kjit_copy_diagnostics_text(context) : NULL;
  fprintf(stderr, "linked_names.c:%d: seed %llu: %s\n%s", line, (unsigned long long)seed, what,
          text ? text : "");
  exit(1);
}
#define EXPECT(condition) \
  do { \
    if (!(condition)) fail(#condition, __LINE__); \
  } while (0)

static unsigned draw(unsigned count)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % count;
}

/* ---- the functions to which extern funcs are bound ---- */

/* Small integers, so that every sum is exact in any type. */
enum { REAL, WHOLE, PAIR, FORMS, CODES = 6 };
#define FUNCTIONS(X) X(0) X(1) X(2) X(3) X(4) X(5)
static double apply(unsigned form, unsigned code, double x)
{
  double scale = code + 2, offset = 10 * form + 3 * code + 1;
  return form == PAIR ? scale * x + (x + offset) : scale * x + offset;
}
#define DEFINE(k) \
  static double real_##k(double x) { return apply(REAL, k, x); } \
  static int32_t whole_##k(int32_t x) { return (int32_t)apply(WHOLE, k, x); } \
  static double pair_##k(double x, int32_t y) { return (k + 2) * x + (y + 10 * PAIR + 3 * k + 1); }
FUNCTIONS(DEFINE)
typedef void (*function)(void);
#define REAL_ROW(k) (function) real_##k,
#define WHOLE_ROW(k) (function) whole_##k,
#define PAIR_ROW(k) (function) pair_##k,
static const function codes[FORMS][CODES] = { { FUNCTIONS(REAL_ROW) },
                                              { FUNCTIONS(WHOLE_ROW) },
                                              { FUNCTIONS(PAIR_ROW) } };

/* The same in LLVM IR. All these texts define a function and a variable with the same names. */
static void write_ir(char *text, size_t size, const char *name, unsigned form, unsigned k)
{
  static const char *const bodies[FORMS] = {
    "define double @%s(double %%x) {\n  %%r = call double @helper(double %%x)\n"
    "  ret double %%r\n}\n",
    "define i32 @%s(i32 %%x) {\n  %%d = sitofp i32 %%x to double\n"
    "  %%r = call double @helper(double %%d)\n  %%i = fptosi double %%r to i32\n"
    "  ret i32 %%i\n}\n",
    "define double @%s(double %%x, i32 %%y) {\n  %%d = sitofp i32 %%y to double\n"
    "  %%h = call double @helper(double %%x)\n  %%r = fadd double %%h, %%d\n"
    "  ret double %%r\n}\n",
  };
  int at = snprintf(text, size,
                    "@offset = addrspace(4) constant double %u.0\n"
                    "define double @helper(double %%x) {\n"
                    "  %%o = load double, ptr addrspace(4) @offset\n"
                    "  %%s = fmul double %%x, %u.0\n  %%r = fadd double %%s, %%o\n"
                    "  ret double %%r\n}\n",
                    10 * form + 3 * k + 1, k + 2);
  snprintf(text + at, size - (size_t)at, bodies[form], name);
}

static unsigned long long bits_of(double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

#define CALL \
  "  { .param .b64 t; .param .b64 u; st.param.f64 [u], %%a; call.uni (t), helper, (u);" \
  " ld.param.f64 %%a, [t]; }\n"

/* The same in PTX, which the driver links. */
static void write_ptx(char *text, size_t size, const char *name, unsigned form, unsigned k)
{
  static const char *const bodies[FORMS] = {
    ".visible .func (.param .b64 r) %s(.param .b64 x) {\n  .reg .f64 %%a;\n"
    "  ld.param.f64 %%a, [x];\n" CALL "  st.param.f64 [r], %%a;\n  ret;\n}\n",
    ".visible .func (.param .b32 r) %s(.param .b32 x) {\n  .reg .f64 %%a;\n  .reg .b32 %%i;\n"
    "  ld.param.u32 %%i, [x];\n  cvt.rn.f64.s32 %%a, %%i;\n" CALL
    "  cvt.rzi.s32.f64 %%i, %%a;\n  st.param.b32 [r], %%i;\n  ret;\n}\n",
    ".visible .func (.param .b64 r) %s(.param .b64 x, .param .b32 y) {\n  .reg .f64 %%a, %%y;\n"
    "  .reg .b32 %%i;\n  ld.param.f64 %%a, [x];\n  ld.param.u32 %%i, [y];\n" CALL
    "  cvt.rn.f64.s32 %%y, %%i;\n  add.rn.f64 %%a, %%a, %%y;\n  st.param.f64 [r], %%a;\n"
    "  ret;\n}\n",
  };
  int at = snprintf(text, size,
                    ".version 7.0\n.target sm_80\n.address_size 64\n"
                    ".visible .global .align 8 .f64 offset = 0d%016llX;\n"
                    ".visible .func (.param .b64 r) helper(.param .b64 x) {\n"
                    "  .reg .f64 %%a, %%o;\n  ld.param.f64 %%a, [x];\n"
                    "  ld.global.f64 %%o, [offset];\n  fma.rn.f64 %%a, %%a, 0d%016llX, %%o;\n"
                    "  st.param.f64 [r], %%a;\n  ret;\n}\n",
                    bits_of(10 * form + 3 * k + 1), bits_of(k + 2));
  snprintf(text + at, size - (size_t)at, bodies[form], name);
}

/* ---- the model ---- */

static const char *const names[] = { "f", "g", "h", "run", "exp", "sinf", "main", "memcpy" };
static const char *const kernel_names[] = { "run", "f", "k", "g", "expf" };
enum { NAMES = sizeof names / sizeof *names, MOST_MODULES = 4, MOST_DECLS = 6, MOST_ALL = 64 };

typedef struct decl decl;
struct decl {
  const char *name;
  enum { FUNC, BOUND, OPEN, KERNEL } kind;
  unsigned form, code; /* for BOUND; `form` also for OPEN */
  unsigned base;       /* FUNC */
  decl *callees[2];
  unsigned callee_count;
  decl *meaning; /* for OPEN: the declaration with which it was linked, or NULL */
};

/* The declarations of a module in the order in which names find them. */
typedef struct module {
  decl own[MOST_DECLS];
  unsigned own_count;
  decl *all[MOST_ALL];
  unsigned all_count;
  const char *kernel;
  decl kernel_decl;
  int library; /* -1: none */
  kjit_module *made;
} module;

static module modules[MOST_MODULES];
static unsigned module_count;

static decl *find(module *m, const char *name)
{
  for (unsigned i = 0; i < m->all_count; i++)
    if (!strcmp(m->all[i]->name, name)) return m->all[i];
  return NULL;
}

static decl *meaning_of(decl *d)
{
  while (d && d->kind == OPEN) d = d->meaning;
  return d;
}

static bool is_whole(decl *d)
{
  d = meaning_of(d);
  for (unsigned i = 0; d && i < d->callee_count; i++)
    if (!is_whole(d->callees[i])) return false;
  return d != NULL;
}

/* Returns the value of a call `name(x)` in the form of the declaration. A func takes any number. */
static double evaluate(decl *d, double x)
{
  d = meaning_of(d);
  if (d->kind == BOUND) return apply(d->form, d->code, x);
  double sum = d->base;
  for (unsigned i = 0; i < d->callee_count; i++) sum += (i + 1) * evaluate(d->callees[i], x + i);
  return sum;
}

/* ---- random graphs ---- */

static bool has_own(const module *m, const char *name)
{
  for (unsigned i = 0; i < m->own_count; i++)
    if (!strcmp(m->own[i].name, name)) return true;
  return m->kernel && !strcmp(m->kernel, name);
}

/* Most unbound declarations have the name of a declaration in the library. */
static const char *draw_name(const module *m, unsigned kind)
{
  const module *library = m->library < 0 ? NULL : &modules[m->library];
  if (kind == OPEN && library && draw(4)) return library->all[draw(library->all_count)]->name;
  return names[draw(4) ? draw(4) : draw(NAMES)];
}

static void make_decl(module *m, bool is_last)
{
  static const unsigned kinds[] = { FUNC, BOUND, OPEN, OPEN };
  decl *d = &m->own[m->own_count];
  unsigned kind = is_last ? FUNC : kinds[draw(4)];
  const char *name = draw_name(m, kind);
  if (has_own(m, name)) return;
  *d = (decl){
    .name = name, .kind = kind, .form = draw(FORMS), .code = draw(CODES), .base = draw(50)
  };
  m->own_count++;
  if (d->kind != FUNC) return;
  for (unsigned i = 0; i < 2 && m->own_count > 1; i++)
    d->callees[d->callee_count++] = &m->own[draw(m->own_count - 1)];
}

/* Removes unbound declarations for which the library has a declaration, and adds the library's
 * declarations. */
static void link_model(module *m)
{
  module *library = m->library < 0 ? NULL : &modules[m->library];
  m->all_count = 0;
  for (unsigned i = 0; i < m->own_count; i++) {
    decl *d = &m->own[i], *found = library && d->kind == OPEN ? find(library, d->name) : NULL;
    /* linking would reject an unbound declaration with the name of a kernel */
    if (found && found->kind == KERNEL) d->kind = BOUND;
    bool is_linked = d->kind == OPEN && found && found->kind != OPEN;
    if (!is_linked) m->all[m->all_count++] = d;
    if (is_linked) d->meaning = found;
    /* in the form that the C function takes */
    if (is_linked && found->kind == BOUND) d->form = found->form;
  }
  m->kernel_decl = (decl){ .name = m->kernel, .kind = KERNEL };
  if (m->kernel) m->all[m->all_count++] = &m->kernel_decl;
  for (unsigned i = 0; library && i < library->all_count; i++)
    m->all[m->all_count++] = library->all[i];
}

static void make_graph(void)
{
  module_count = 2 + draw(MOST_MODULES - 1);
  for (unsigned i = 0; i < module_count; i++) {
    module *m = &modules[i];
    *m = (module){ .library = !i ? -1 : (int)(draw(2) ? draw(i) : i - 1) };
    m->kernel = i + 1 == module_count || draw(3) == 0
                  ? kernel_names[draw(sizeof kernel_names / sizeof *kernel_names)]
                  : NULL;
    unsigned count = 2 + draw(MOST_DECLS - 1);
    for (unsigned k = 0; k < count; k++) make_decl(m, k + 1 == count);
    link_model(m);
  }
}

/* ---- as text ---- */

/* Writes a call `name(x)` for a value x of type f64 or without a type. */
static void write_call(char *text, const decl *d, const char *x)
{
  static const char *const calls[FORMS] = { "%s(f64(%s))", "f64(%s(i32(%s)))",
                                            "%s(f64(%s), i32(%s))" };
  if (d->kind == FUNC) sprintf(text, "%s(f64(%s))", d->name, x);
  else sprintf(text, calls[d->form], d->name, x, x);
}

/* Writes a func. An unbound declaration in another module may be linked to it, so it accepts the
 * arguments of every form.
 */
static void write_func(char *text, const decl *d)
{
  char call[128], x[32];
  text += sprintf(text, "func %s(x, y = 0) {\n  var s: f64 = %u\n", d->name, d->base);
  for (unsigned i = 0; i < d->callee_count; i++) {
    snprintf(x, sizeof x, "x + %u", i);
    write_call(call, d->callees[i], x);
    text += sprintf(text, "  s += %u * f64(%s)\n", i + 1, call);
  }
  sprintf(text, "  return s\n}\n");
}

static void write_module(const module *m, char *text)
{
  static const char *const heads[FORMS] = { "extern func %s(x: f64) -> f64\n",
                                            "extern func %s(x: i32) -> i32\n",
                                            "extern func %s(x: f64, y: i32) -> f64\n" };
  *text = 0;
  for (unsigned i = 0; i < m->own_count; i++) {
    if (m->own[i].kind == FUNC) write_func(text, &m->own[i]);
    else sprintf(text, heads[m->own[i].form], m->own[i].name);
    text += strlen(text);
  }
  if (!m->kernel) return;
  text += sprintf(text, "kernel %s(r) @grid(1) @block(1) {\n", m->kernel);
  for (unsigned i = 0; i < m->own_count; i++) {
    char call[128];
    write_call(call, &m->own[i], "2");
    /* every kernel calls the func, or none does */
    if (is_whole((decl *)&m->own[i])) text += sprintf(text, "  r[%u] = %s\n", i, call);
  }
  sprintf(text, "}\n");
}

static void replace(kjit_module **module, kjit_module *with)
{
  kjit_release_module(*module);
  *module = with;
}

/* Some of the modules have PTX, if all of them may. */
static void make_modules(bool has_ptx)
{
  for (unsigned i = 0; i < module_count; i++) {
    module *m = &modules[i];
    char text[4096], code[2048];
    kjit_module *next;
    write_module(m, text);
    EXPECT(kjit_parse_module(context, "m.kir", text, strlen(text), &m->made) == KJIT_OK);
    for (unsigned k = 0; k < m->own_count; k++) {
      const decl *d = &m->own[k];
      if (d->kind != BOUND) continue;
      bool is_ptx = has_ptx && (i + d->code) % 2;
      (is_ptx ? write_ptx : write_ir)(code, sizeof code, d->name, d->form, d->code);
      EXPECT(kjit_bind_extern(m->made, d->name, codes[d->form][d->code], code, strlen(code),
                              &next) == KJIT_OK);
      replace(&m->made, next);
    }
    if (m->library < 0) continue;
    EXPECT(kjit_link_module(m->made, modules[m->library].made, &next) == KJIT_OK);
    replace(&m->made, next);
  }
}

static void release_modules(void)
{
  for (unsigned i = 0; i < module_count; i++) kjit_release_module(modules[i].made);
}

/* ---- runs ---- */

static void check_launch(module *m, kjit_device *device)
{
  kjit_kernel *kernel;
  double result[MOST_DECLS] = { 0 };
  const int64_t shape[] = { MOST_DECLS };
  kjit_tensor tensor = kjit_make_tensor(result, KJIT_F64, 1, shape);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  EXPECT(kjit_get_kernel(m->made, m->kernel, &kernel) == KJIT_OK);
  EXPECT(kjit_launch(kernel, &config, &argument, 1) == KJIT_OK);
  for (unsigned i = 0; i < m->own_count; i++)
    if (is_whole(&m->own[i])) EXPECT(result[i] == evaluate(&m->own[i], 2));
}

/* All calls are inlined and folded: the PTX stores the expected values. */
static void check_ptx(module *m)
{
  kjit_kernel *kernel;
  void *code;
  size_t size_bytes;
  kjit_compile_options options = { .size_bytes = sizeof options, .target = "sm_80" };
  EXPECT(kjit_get_kernel(m->made, m->kernel, &kernel) == KJIT_OK);
  EXPECT(kjit_compile(kernel, "f64[:] C", &options, KJIT_STAGE_PTX, &code, &size_bytes) == KJIT_OK);
  for (unsigned i = 0; i < m->own_count; i++) {
    if (!is_whole(&m->own[i])) continue;
    double expected = evaluate(&m->own[i], 2);
    char decimal[32], hexadecimal[32];
    snprintf(decimal, sizeof decimal, "%llu", bits_of(expected));
    snprintf(hexadecimal, sizeof hexadecimal, "%016llX", bits_of(expected));
    EXPECT(strstr(code, decimal) || strstr(code, hexadecimal));
  }
  kjit_free(context, code);
}

/* Runs the kernels in a new context, as a new process would. */
static void run(const char *directory, kjit_device_kind kind, bool looks_at_ptx)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = directory };
  kjit_device *device;
  EXPECT(kjit_create_context(&config, &context) == KJIT_OK);
  EXPECT(kjit_get_device(context, kind, 0, &device) == KJIT_OK);
  make_modules(kind == KJIT_DEVICE_CUDA && !looks_at_ptx);
  for (unsigned i = 0; i < module_count; i++) {
    if (!modules[i].kernel) continue;
    check_launch(&modules[i], device);
    if (looks_at_ptx) check_ptx(&modules[i]);
  }
  release_modules();
  kjit_destroy_context(context);
  context = NULL;
}

/* Exchanges the bindings of modules with equal texts. */
static void exchange_bindings(void)
{
  for (unsigned i = 0; i < module_count; i++)
    for (unsigned k = 0; k < modules[i].own_count; k++)
      modules[i].own[k].code = CODES - 1 - modules[i].own[k].code;
}

int main(int argc, char **argv)
{
  const char *directory = argc > 1 ? argv[1] : "";
  unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 20,
                first = argc > 4 ? strtoul(argv[4], NULL, 10) : 1;
  kjit_device_kind kind = argc > 3 && !strcmp(argv[3], "cuda") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
  for (seed = first; seed < first + count; seed++) {
    state = seed * 0x9e3779b97f4a7c15u;
    make_graph();
    run("", kind, true);
    run(directory, kind, false);
    exchange_bindings();
    run(directory, kind, false);
    exchange_bindings();
    run(directory, kind, false);
  }
  return 0;
}

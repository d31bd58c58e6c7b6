/* kjit_config.on_stage reports the stages of compilations: of a launch, of code for inspection, of
 * a func, and in a child process. It reports failures, and reports nothing if nothing is compiled.
 *
 * RUN: env KJIT_TEST_COMPILER=%libdir/libkjit-compiler.so %programs/stages | FileCheck %s
 * CHECK: {{^}}launch: twice typed, twice llvm, twice llvm-opt, twice object, twice over: KJIT_OK
 * CHECK-NEXT: again:: KJIT_OK
 * CHECK-NEXT: ptx: twice typed, twice llvm, twice llvm-opt, twice ptx, twice over: KJIT_OK
 * CHECK-NEXT: llvm: twice typed, twice llvm, twice over: KJIT_OK
 * CHECK-NEXT: kir: twice kir, twice over: KJIT_OK
 * CHECK-NEXT: wrong: wrong typed, wrong over: KJIT_ERROR_TYPE
 * CHECK-NEXT: func: half typed, half llvm, half llvm-opt, half object, half over: KJIT_OK
 * CHECK-NEXT: child: twice typed, twice over: KJIT_OK
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char told[1024];

static void tell(void *user, const char *name, const char *stage)
{
  size_t length = strlen(told);
  if (user != told) abort();
  snprintf(told + length, sizeof told - length, "%s %s %s", length ? "," : "", name,
           stage ? stage : "over");
}

static void show(const char *what, kjit_status status)
{
  printf("%s:%s: %s\n", what, told, kjit_get_status_name(status));
  told[0] = 0;
}

static void require(kjit_status status)
{
  if (status == KJIT_OK) return;
  fprintf(stderr, "%s\n", kjit_get_status_name(status));
  exit(EXIT_FAILURE);
}

static kjit_module *parse(kjit_context *context)
{
  static const char text[] = "kernel twice(x) { for i in grid_range(len(x)) { x[i] = 2 * x[i] } }\n"
                             "kernel wrong(x) { x[0] = x }\n"
                             "func half(a) { return 0.5 * a }\n";
  kjit_module *module;
  require(kjit_parse_module(context, "stages.kir", text, sizeof text - 1, &module));
  return module;
}

static kjit_kernel *find(kjit_module *module, const char *name)
{
  kjit_kernel *kernel;
  require(kjit_get_kernel(module, name, &kernel));
  return kernel;
}

static kjit_status launch(kjit_context *context, kjit_kernel *kernel)
{
  float x[4] = { 1, 2, 3, 4 };
  int64_t extent = 4;
  kjit_device *device;
  kjit_tensor tensor = kjit_make_tensor(x, KJIT_F32, 1, &extent);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  require(kjit_get_device(context, KJIT_DEVICE_CPU, 0, &device));
  kjit_launch_config config = { .size_bytes = sizeof config, .device = device };
  return kjit_launch(kernel, &config, &argument, 1);
}

static kjit_status compile(kjit_context *context, kjit_kernel *kernel, const char *target,
                           kjit_stage stage)
{
  kjit_compile_options options = { .size_bytes = sizeof options, .target = target };
  void *code = NULL;
  size_t size_bytes;
  kjit_status status = kjit_compile(kernel, "f32[:]", &options, stage, &code, &size_bytes);
  kjit_free(context, code);
  return status;
}

static kjit_status call(kjit_module *module)
{
  kjit_function *function;
  require(kjit_get_function(module, "half", &function));
  kjit_arg argument = kjit_arg_f64(3), result;
  return kjit_call_function(function, &argument, 1, &result);
}

static void run_in_child(kjit_config config)
{
  kjit_context *context;
  config.compile_in_child = 1;
  require(kjit_create_context(&config, &context));
  kjit_module *module = parse(context);
  show("child", launch(context, find(module, "twice")));
  kjit_release_module(module);
  require(kjit_destroy_context(context));
}

int main(void)
{
  kjit_context *context;
  kjit_config config = { .size_bytes = sizeof config,
                         .compiler_path = getenv("KJIT_TEST_COMPILER"),
                         .cache_directory = "",
                         .user = told,
                         .on_stage = tell };
  require(kjit_create_context(&config, &context));
  kjit_module *module = parse(context);
  kjit_kernel *twice = find(module, "twice");
  show("launch", launch(context, twice));
  show("again", launch(context, twice));
  show("ptx", compile(context, twice, "sm_90", KJIT_STAGE_PTX));
  show("llvm", compile(context, twice, "cpu", KJIT_STAGE_LLVM));
  show("kir", compile(context, twice, "cpu", KJIT_STAGE_KIR));
  show("wrong", compile(context, find(module, "wrong"), "cpu", KJIT_STAGE_OBJECT));
  show("func", call(module));
  kjit_release_module(module);
  require(kjit_destroy_context(context));
  run_in_child(config);
}

/* change_folder FOLDER [child]: goes to FOLDER and compiles a kernel there for the CPU. */
#include <kjit/kjit.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
  static const char text[] = "kernel k(r) { for i in grid_range(len(r)) { r[i] = sin(r[i]) + 1 } }";
  kjit_config config = { .size_bytes = sizeof config,
                         .cache_directory = "",
                         .compile_in_child = argc > 2 };
  kjit_context *context;
  kjit_module *module;
  const kjit_kernel *kernel;
  float r[4] = { 0 };
  int64_t n = 4;
  kjit_tensor tensor = kjit_make_tensor(r, KJIT_F32, 1, &n);
  kjit_arg argument = kjit_arg_tensor(&tensor);
  if (chdir(argv[1]) != 0 || kjit_create_context(&config, &context) != KJIT_OK) return 1;
  kjit_status status = kjit_parse_module(context, "change_folder", text, strlen(text), &module);
  if (status == KJIT_OK) status = kjit_get_kernel(module, "k", &kernel);
  if (status == KJIT_OK) status = kjit_launch(kernel, NULL, &argument, 1);
  printf("%s %g\n", kjit_get_status_name(status), r[3]);
  kjit_destroy_context(context);
  return status != KJIT_OK;
}

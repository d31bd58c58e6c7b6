/* A plugin that embeds kjit. Ten times, the library is opened, launches run on two threads of the
 * application, and the library is closed again while one of these threads continues to run. */
#include <dirent.h>
#include <dlfcn.h>
#include <kjit/kjit.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 10, LAUNCHES = 20, ELEMENTS = 100000 };

static const char source[] =
  "kernel k(r: f32[:], x: f32[:]) { for i in grid_range(len(r)) { r[i] = "
  "exp(x[i]) + r[i] } }";
static void *library;
static pthread_barrier_t barrier;

static void stop(const char *what)
{
  printf("%s failed\n", what);
  exit(1);
}

static void *find(const char *name)
{
  void *address = dlsym(library, name);
  if (!address) stop(name);
  return address;
}

#define CALL(name, ...) (((__typeof__(&name))find(#name))(__VA_ARGS__))
#define TRY(name, ...) \
  if (CALL(name, __VA_ARGS__) != KJIT_OK) stop(#name)

/* Launches on several threads, also on a machine with one core. */
static void launch(float *r, float *x)
{
  kjit_config config = { .size_bytes = sizeof config, .cache_directory = "", .cpu_threads = 4 };
  kjit_context *context;
  kjit_module *module;
  kjit_kernel *kernel;
  int64_t extent[] = { ELEMENTS };
  kjit_tensor a = { r, KJIT_DEVICE_CPU, 0, 1, 2, 32, 1, extent, NULL, 0 },
              b = { x, KJIT_DEVICE_CPU, 0, 1, 2, 32, 1, extent, NULL, 0 };
  kjit_arg arguments[] = { kjit_arg_tensor(&a), kjit_arg_tensor(&b) };
  TRY(kjit_create_context, &config, &context);
  TRY(kjit_parse_module, context, "k.kir", source, strlen(source), &module);
  TRY(kjit_get_kernel, module, "k", &kernel);
  for (int i = 0; i < LAUNCHES; i++) TRY(kjit_launch, kernel, NULL, arguments, 2);
  CALL(kjit_destroy_context, context);
}

static void *stay(void *nothing)
{
  static float r[ELEMENTS], x[ELEMENTS];
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(&barrier);
    launch(r, x);
    pthread_barrier_wait(&barrier);
  }
  return nothing;
}

static int count_threads(void)
{
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  for (struct dirent *entry; folder && (entry = readdir(folder));) count += *entry->d_name != '.';
  if (folder) closedir(folder);
  return count;
}

int main(int count, char **arguments)
{
  static float r[ELEMENTS], x[ELEMENTS];
  pthread_t thread;
  if (count < 2 || pthread_barrier_init(&barrier, NULL, 2)) stop("start");
  if (pthread_create(&thread, NULL, stay, NULL)) stop("pthread_create");
  for (int i = 0; i < ROUNDS; i++) {
    if (!(library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL))) stop("dlopen");
    pthread_barrier_wait(&barrier);
    launch(r, x);
    pthread_barrier_wait(&barrier);
    /* the system lists a joined thread for a short time */
    while (count_threads() > 2) sched_yield();
    dlclose(library);
    if (dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD)) stop("dlclose");
  }
  pthread_join(thread, NULL);
  if (r[7] != ROUNDS * LAUNCHES) stop("a launch");
  printf("unloaded %d times\n", ROUNDS);
  return 0;
}

/* A store of the application for compiled code. One context takes code from the store that another
 * context has compiled. Results are correct for any data that the store returns.
 * RUN: %programs/store cpu
 * RUN: %if cuda %{ %programs/store cuda %}
 */
#include <kjit/kjit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 32, MOST = 8, COUNT = 1000 };

typedef struct entry {
  unsigned char key[KEY_BYTES];
  unsigned char *data; /* at an odd address */
  size_t size_bytes;
} entry;

typedef struct store {
  entry entries[MOST];
  int count, loads, releases, stores;
} store;

static int load(void *user, const uint8_t *key, const void **data, size_t *size_bytes)
{
  store *s = user;
  for (int i = 0; i < s->count; i++) {
    if (memcmp(s->entries[i].key, key, KEY_BYTES)) continue;
    *data = s->entries[i].data + 1;
    *size_bytes = s->entries[i].size_bytes;
    s->loads++;
    return 1;
  }
  return 0;
}

static void release(void *user, const void *data)
{
  (void)data;
  ((store *)user)->releases++;
}

static void keep(void *user, const uint8_t *key, const void *data, size_t size_bytes)
{
  store *s = user;
  int i = 0;
  while (i < s->count && memcmp(s->entries[i].key, key, KEY_BYTES)) i++;
  if (i == MOST) abort();
  if (i < s->count) free(s->entries[i].data);
  else s->count++;
  memcpy(s->entries[i].key, key, KEY_BYTES);
  s->entries[i].data = malloc(size_bytes + 1);
  s->entries[i].size_bytes = size_bytes;
  memcpy(s->entries[i].data + 1, data, size_bytes);
  s->stores++;
}

static void fail_at(int line, const char *what, kjit_context *context)
{
  char *messages = context ? kjit_copy_diagnostics_text(context) : NULL;
  fprintf(stderr, "store.c:%d: %s\n%s", line, what, messages ? messages : "");
  exit(1);
}
#define CHECK(condition) \
  do { \
    if (!(condition)) fail_at(__LINE__, #condition, context); \
  } while (0)

/* Makes one launch in a new context, as a new process would. */
static kjit_statistics launch(store *s, const char *name)
{
  static const char text[] =
    "kernel twice(r, x) { for i in grid_range(len(r)) { r[i] = 2 * x[i] } }\n";
  kjit_context *context = NULL;
  kjit_device *device;
  kjit_module *module;
  kjit_kernel *kernel;
  kjit_config config = { .size_bytes = sizeof config };
  kjit_statistics statistics = { .size_bytes = sizeof statistics };
  kjit_cache_store callbacks = {
    .size_bytes = sizeof callbacks, .user = s, .load = load, .release = release, .store = keep
  };
  float x[COUNT], r[COUNT] = { 0 };
  int64_t length = COUNT;
  kjit_tensor tensors[2];
  config.cache_store = &callbacks;
  CHECK(kjit_create_context(&config, &context) == KJIT_OK);
  CHECK(kjit_get_cache_directory(context) == NULL);
  CHECK(kjit_get_device(context, !strcmp(name, "cuda") ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU, 0,
                        &device) == KJIT_OK);
  CHECK(kjit_parse_module(context, "twice.kir", text, sizeof text - 1, &module) == KJIT_OK);
  CHECK(kjit_get_kernel(module, "twice", &kernel) == KJIT_OK);
  for (int i = 0; i < COUNT; i++) x[i] = (float)i;
  for (int i = 0; i < 2; i++)
    tensors[i] = (kjit_tensor){ .data = i ? x : r,
                                .device_type = 1,
                                .rank = 1,
                                .code = 2,
                                .bits = 32,
                                .lanes = 1,
                                .shape = &length };
  kjit_arg arguments[] = { kjit_arg_tensor(&tensors[0]), kjit_arg_tensor(&tensors[1]) };
  kjit_launch_config launch_config = { .size_bytes = sizeof launch_config, .device = device };
  CHECK(kjit_launch(kernel, &launch_config, arguments, 2) == KJIT_OK);
  for (int i = 0; i < COUNT; i++) CHECK(r[i] == 2 * x[i]);
  kjit_get_statistics(context, &statistics);
  kjit_destroy_context(context);
  return statistics;
}

int main(int count, char **arguments)
{
  static store s;
  kjit_context *context = NULL;
  if (count < 2) return 2;
  kjit_statistics first = launch(&s, arguments[1]), second = launch(&s, arguments[1]);
  CHECK(first.compilations == 1 && first.disk_misses == 1 && s.stores == 1);
  CHECK(second.compilations == 0 && second.disk_hits == 1 && s.stores == 1);
  CHECK(s.loads == s.releases && s.loads == 1);
  /* a damaged entry is compiled and stored again */
  for (size_t at = 0; at < s.entries[0].size_bytes; at += 1 + s.entries[0].size_bytes / 40) {
    s.entries[0].data[1 + at] ^= 0x10;
    kjit_statistics again = launch(&s, arguments[1]);
    CHECK(again.compilations == 1 && again.disk_hits == 0);
  }
  s.entries[0].size_bytes /= 2;
  CHECK(launch(&s, arguments[1]).compilations == 1);
  CHECK(launch(&s, arguments[1]).disk_hits == 1 && s.loads == s.releases);
  printf("ok\n");
  return 0;
}

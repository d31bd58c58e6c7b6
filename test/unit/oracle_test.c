/* Random programs that the oracle checks (oracle_clock.h has the rules). The seed of a program
 * determines its features and then its operations. A program that fails is reduced to the features
 * and operations that it needs to fail. Then it runs again and prints all calls: calls of kjit are
 * indented by two columns, and calls of the driver by six. The last line is the violation.
 *
 *   oracle_test                          2000 fixed seeds, and 500 fresh ones; 200 programs of four
 *                                        threads; a quarter of each under a sanitizer
 *   oracle_test --count 200000           for nightly runs: only fresh seeds
 *   oracle_test --seed 17                this program, reduced, with all calls
 *   oracle_test --seed 17 --without 128  without features, by the bits of oracle_feature
 *   oracle_test --threads 4              programs with this number of threads, which a seed does
 *                                        not repeat exactly; with --seed it runs a thousand times
 */
#include "../seed.h"
#include "oracle_random.h"

enum { MOST_OPERATIONS = 400, MOST_THREADS = 8, KINDS = 64 };

typedef struct operation {
  uint8_t action;
  bool is_left_out;
  uint8_t fail_at, fail_more, fail_malloc_at; /* see oracle_here */
  int fail_with;
  uint32_t x[5];
} operation;

typedef struct program {
  uint64_t seed;
  uint32_t features, count, threads;
  bool is_traced;
  operation operations[MOST_OPERATIONS];
} program;

/* ---- making ---- */

static uint32_t next_random(uint64_t *state)
{
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static void make_program(program *made, uint64_t seed, uint32_t without, uint32_t threads)
{
  uint64_t state = seed * 0xd1342543de82ef95u + 1;
  *made = (program){ .seed = seed, .threads = threads };
  /* each feature has a probability of one half; failing driver calls, failing allocations and
   * resets have one quarter */
  made->features = next_random(&state) & USES_ALL & ~without;
  if (next_random(&state) & 1) made->features &= ~(uint32_t)USES_DRIVER_FAILURES;
  if (next_random(&state) & 1) made->features &= ~(uint32_t)USES_MALLOC_FAILURES;
  if (next_random(&state) & 1) made->features &= ~(uint32_t)USES_RESETS;
  made->count = 20 + next_random(&state) % (MOST_OPERATIONS - 20);
  uint32_t weights = 0;
  for (uint32_t i = 0; i < RANDOM_ACTIONS; i++) weights += random_actions[i].weight;
  for (uint32_t i = 0; i < made->count; i++) {
    operation *at = &made->operations[i];
    uint32_t weight = next_random(&state) % weights, action = 0;
    while (weight >= random_actions[action].weight) weight -= random_actions[action++].weight;
    at->action = (uint8_t)action;
    for (int k = 0; k < 5; k++) at->x[k] = next_random(&state) >> 2;
    uint32_t failures = next_random(&state);
    if (failures % 16 == 0) at->fail_at = (uint8_t)(1 + failures / 16 % 12);
    if ((failures >> 24 & 3) == 3) at->fail_more = (uint8_t)(1 + (failures >> 20 & 7));
    if (failures >> 12 & 1 && failures >> 13 & 1)
      at->fail_malloc_at = (uint8_t)(failures >> 14 & 1 ? 0 : 1 + failures / 65536 % 20);
    at->fail_with = failures >> 31       ? CUDA_OUT_OF_MEMORY
                    : failures >> 28 & 7 ? CUDA_UNKNOWN
                                         : CUDA_ILLEGAL_ADDRESS;
  }
}

/* ---- running ---- */

static void do_operation(random_actor *actor, const program *of, uint32_t i)
{
  const operation *at = &of->operations[i];
  const random_action *action = &random_actions[at->action];
  if (at->is_left_out || (action->features && !(action->features & of->features))) return;
  oracle_trace("%u %s\n", i, action->name);
  oracle_result->operation = i;
  oracle_result->operations++;
  oracle_here.fail_at = of->features & USES_DRIVER_FAILURES ? at->fail_at : 0;
  oracle_here.fail_more = oracle_here.fail_at ? at->fail_more : 0;
  oracle_here.fail_with = at->fail_with;
  if (at->fail_with == CUDA_ILLEGAL_ADDRESS && !(of->features & USES_FAULTS))
    oracle_here.fail_with = CUDA_UNKNOWN;
  oracle_here.fail_malloc_at = of->features & USES_MALLOC_FAILURES ? at->fail_malloc_at : 0;
  action->run(actor, at->x);
  oracle_here.fail_at = oracle_here.fail_more = oracle_here.fail_malloc_at = 0;
}

static void end_actor(random_actor *actor)
{
  pthread_mutex_lock(&oracle.mutex); /* the program has waited for all its work */
  for (uint32_t i = 0; i < oracle.stream_count && actor->kept_count; i++)
    oracle_join(&oracle.host, &oracle.streams[i]->clock);
  pthread_mutex_unlock(&oracle.mutex);
  for (uint32_t i = 0; i < actor->kept_count; i++) world_release_array(&actor->kept[i]);
  for (uint32_t i = 0; i < CAPTURES; i++)
    if (actor->captures[i].stream) do_end(actor, (uint32_t[]){ i, i, 0, 0, 0 });
  for (uint32_t i = 0; i < EXPORTS; i++) world_take_back(&actor->exports[i]);
  for (uint32_t i = 0; i < ARRAYS; i++) world_release_array(&actor->arrays[i]);
  for (uint32_t i = 0; i < GRAPHS; i++) world_destroy_graph(&actor->graphs[i]);
  for (uint32_t i = 0; i < STREAMS; i++) world_destroy_stream(&actor->streams[i]);
}

static void end_host_memory(random_actor *actor)
{
  for (host_memory *at = actor->host_memory, *next; at; at = next) {
    next = at->next;
    free(at);
  }
  actor->host_memory = NULL;
}

typedef struct worker {
  const program *program;
  uint32_t number;
  pthread_t thread;
  random_actor *actor;
} worker;

/* Each thread has its own operations and objects, of one context and its devices. The threads share
 * some arrays, until each thread has released them. */
static void share_array(worker *workers, uint32_t threads, uint32_t device, uint32_t place)
{
  world_array array = world_make_array(device, KJIT_MEMORY_DEVICE, (int64_t[]){ 16, 16 }, NULL);
  if (array.array) array.memory->is_used_by_others = true;
  for (uint32_t i = 0; i < threads && array.array; i++) {
    workers[i].actor->arrays[place] = array;
    array.memory->references++;
    (void)kjit_retain_array(array.array);
  }
  world_release_array(&array);
}

static void *run_worker(void *user)
{
  const worker *self = user;
  const program *of = self->program;
  random_actor *actor = self->actor;
  oracle_here.thread = self->number + 1;
  for (uint32_t i = self->number; i < of->count; i += of->threads) do_operation(actor, of, i);
  end_hosts_capture(actor, 1);
  if (of->seed & 1 || of->threads > 1) end_actor(actor);
  return NULL;
}

static void run_program(void *user)
{
  enum { LITTLE = 24 << 10, LIMIT_OF_CODE = 1, SHARED = 4 };
  const program *of = user;
  worker workers[MOST_THREADS];
  oracle_reset_state();
  oracle.is_traced = of->is_traced;
  oracle.checks_host_captures = true;
  oracle.is_threaded = of->threads > 1;
  oracle.random = of->seed;
  oracle.spreads_faults = of->features & SPREADS_FAULTS;
  if (of->features & USES_LITTLE_MEMORY) oracle.memory_limit = LITTLE;
  world_open(of->features & USES_EVICTIONS ? LIMIT_OF_CODE : 0, of->features & USES_ALLOCATOR);
  for (uint32_t i = 0; i < of->threads; i++) {
    workers[i] = (worker){ of, i, .actor = calloc(1, sizeof(random_actor)) };
    if (!workers[i].actor) abort();
    workers[i].actor->features = of->features;
  }
  for (uint32_t i = 0; i < SHARED && of->threads > 1; i++)
    share_array(workers, of->threads, of->features & USES_DEVICES ? i % ORACLE_DEVICES : 0, i);
  if (of->threads == 1) (void)run_worker(&workers[0]);
  for (uint32_t i = 0; i < of->threads && of->threads > 1; i++)
    if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i])) abort();
  for (uint32_t i = 0; i < of->threads && of->threads > 1; i++)
    (void)pthread_join(workers[i].thread, NULL);
  oracle_result->operation = of->count;
  world_close();
  for (uint32_t i = 0; i < of->threads; i++) end_host_memory(workers[i].actor);
}

/* ---- making one that fails small ---- */

/* Removes digits and the names of streams and memory from a message, so that violations of one kind
 * have the same text. */
static void kind_of(const char *message, char *kind, size_t size)
{
  static const char *const left_out[] = { "non-blocking ", "default ", "thread's ", "device ",
                                          "managed ",      "pinned ",  "opened " };
  size_t at = 0;
  while (*message && at + 1 < size) {
    size_t skipped = *message >= '0' && *message <= '9';
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out && !skipped; i++)
      if (!strncmp(message, left_out[i], strlen(left_out[i]))) skipped = strlen(left_out[i]);
    if (!skipped) kind[at++] = *message++;
    else message += skipped;
  }
  kind[at] = 0;
}

static bool fails_alike(program *of, const char *kind)
{
  char now[512];
  if (world_run(run_program, of)) return false;
  kind_of(oracle_result->message, now, sizeof now);
  return !strcmp(now, kind);
}

static void make_small(program *of, const char *kind)
{
  for (uint32_t bit = 1; bit < USES_ALL; bit <<= 1) {
    of->features ^= of->features & bit ? bit : 0;
    uint32_t before = of->features | bit;
    if (!fails_alike(of, kind)) of->features = before;
  }
  /* leaving out an operation changes the objects from which later operations choose, so a second
   * pass can remove more */
  for (uint32_t size = of->count / 2, again = 2; size; size = size > 1 || !again-- ? size / 2 : 1)
    for (uint32_t first = 0; first < of->count; first += size) {
      bool was_there[MOST_OPERATIONS] = { false }, has_some = false;
      for (uint32_t i = first; i < first + size && i < of->count; i++) {
        was_there[i] = !of->operations[i].is_left_out;
        has_some = has_some || was_there[i];
        of->operations[i].is_left_out = true;
      }
      if (!has_some || fails_alike(of, kind)) continue;
      for (uint32_t i = first; i < first + size && i < of->count; i++)
        of->operations[i].is_left_out = !was_there[i];
    }
  for (uint32_t i = 0; i < of->count; i++) {
    operation *at = &of->operations[i], before = *at;
    if (at->is_left_out) continue;
    at->fail_at = 0;
    if (!fails_alike(of, kind)) *at = before;
    before = *at;
    at->fail_malloc_at = 0;
    if (!fails_alike(of, kind)) *at = before;
  }
}

static void show_small(program *of)
{
  char kind[512];
  kind_of(oracle_result->message, kind, sizeof kind);
  if (of->threads == 1) {
    make_small(of, kind);
    of->is_traced = true;
    (void)world_run(run_program, of);
  }
  printf("features %u\n%.*s%s\n", of->features, (int)oracle_result->trace_bytes,
         oracle_result->trace, oracle_result->message);
}

/* ---- many ---- */

typedef struct totals {
  uint32_t programs, failures, kind_count;
  struct {
    char kind[512];
    uint32_t count;
    uint64_t seed;
  } kinds[KINDS];
} totals;

static void count_failure(totals *all, uint64_t seed, uint32_t threads)
{
  char kind[512];
  kind_of(oracle_result->message, kind, sizeof kind);
  all->failures++;
  uint32_t i = 0;
  while (i < all->kind_count && strcmp(all->kinds[i].kind, kind)) i++;
  if (i == KINDS) return;
  if (i == all->kind_count) {
    all->kind_count++;
    memcpy(all->kinds[i].kind, kind, sizeof kind);
    all->kinds[i].seed = seed;
    printf("seed %llu, threads %u: %s\n", (unsigned long long)seed, threads,
           oracle_result->message);
  }
  all->kinds[i].count++;
}

static void run_seeds(totals *all, program *room, uint64_t first, uint64_t count, uint32_t without,
                      uint32_t threads)
{
  for (uint64_t seed = first; seed < first + count; seed++) {
    make_program(room, seed, without, threads);
    all->programs++;
    if (!world_run(run_program, room)) count_failure(all, seed, threads);
  }
}

static uint64_t read_number(const char *text)
{
  char *end;
  uint64_t number = strtoull(text, &end, 0);
  if (!*text || *end) {
    fprintf(stderr, "oracle_test: `%s` is no number\n", text);
    exit(2);
  }
  return number;
}

/* Builds with sanitizers take ten times as long and run a quarter of the programs. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SHARE = 4 };
#else
enum { SHARE = 1 };
#endif

int main(int count, char **arguments)
{
  enum {
    FIXED = 2000 / SHARE,
    FRESH = 500 / SHARE,
    THREADED = 200 / SHARE,
    THREADS = 4,
    TRIES = 1000
  };
  static program room;
  static totals all;
  uint64_t seed = 0, seeds = 0;
  uint32_t without = 0, threads = 1;
  world_fix_addresses(arguments); /* this may start the program again, so the seed is drawn later */
  const uint64_t fresh = (uint64_t)kj_draw_seed() * 1000;
  for (int i = 1; i + 1 < count; i += 2) {
    uint64_t number = read_number(arguments[i + 1]);
    if (!strcmp(arguments[i], "--seed")) seed = number;
    else if (!strcmp(arguments[i], "--count")) seeds = number;
    else if (!strcmp(arguments[i], "--without")) without = (uint32_t)number;
    else if (!strcmp(arguments[i], "--threads") && number && number <= MOST_THREADS)
      threads = (uint32_t)number;
    else return 2;
  }
  if (seed && !seeds) {
    make_program(&room, seed, without, threads);
    /* programs with several threads are traced in the first run, because each run is different */
    room.is_traced = threads > 1;
    uint32_t tries = threads > 1 ? TRIES : 1;
    while (tries && world_run(run_program, &room)) tries--;
    if (!tries) {
      printf("seed %llu: no violation\n", (unsigned long long)seed);
      return 0;
    }
    show_small(&room);
    return 1;
  }
  if (seeds) {
    run_seeds(&all, &room, seed ? seed : fresh, seeds, without, threads);
  } else {
    run_seeds(&all, &room, 1, FIXED, without, threads);
    run_seeds(&all, &room, fresh, FRESH, without, threads);
    if (threads == 1) run_seeds(&all, &room, fresh, THREADED, without, THREADS);
  }
  for (uint32_t i = 0; i < all.kind_count; i++)
    printf("%u times, as with seed %llu: %s\n", all.kinds[i].count,
           (unsigned long long)all.kinds[i].seed, all.kinds[i].kind);
  printf("fresh seeds from %llu: %u of %u programs fail; %llu operations, %llu calls of the "
         "driver, %llu checks\n",
         (unsigned long long)fresh, all.failures, all.programs,
         (unsigned long long)oracle_result->operations,
         (unsigned long long)oracle_result->driver_calls,
         (unsigned long long)oracle_result->checks);
  return all.failures != 0;
}

/* Programs in which memory is reused while another stream may still use it. */
#include "oracle_programs.h"

/* Memory that more streams have used than a word has bits. */
static void use_many_streams(void)
{
  world_stream own = non_blocking(0);
  for (int i = 0; i < 60; i++) {
    world_stream passing = non_blocking(0);
    world_destroy_stream(&passing);
  }
  world_stream other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&other, &array);
  world_release_array(&array);
  (void)array_on(0, own.stream);
}

static void export_among_many_streams(void)
{
  world_stream own = non_blocking(0);
  for (int i = 0; i < 60; i++) {
    world_stream passing = non_blocking(0);
    world_destroy_stream(&passing);
  }
  world_stream other = non_blocking(0);
  world_array array = array_on(0, NULL);
  launch_on(&own, &array);
  (void)world_give(&array, 0, other.stream);
}

/* A block may be used only after an event. A first owner takes the block and returns it without
 * using it. The next owner's stream has not waited for the event. */
static void forget_a_join(void)
{
  world_stream own = world_make_stream(0, 0, false), other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&other, &array);
  world_release_array(&array);
  array = array_on(0, own.stream);
  world_release_array(&array);
  (void)array_on(0, NULL);
}

/* Memory is passed from one stream to the default stream, and from there to a third stream, without
 * any work in between. */
static void pass_by_the_default_stream(void)
{
  world_stream first = world_make_stream(0, 0, false), last = world_make_stream(0, 0, false);
  world_array array = array_on(0, first.stream);
  launch_on(&first, &array);
  world_release_array(&array);
  array = array_on(0, NULL);
  world_release_array(&array);
  (void)array_on(0, last.stream);
}

/* Little memory is left, so the per-thread stream gets a block of another stream, ordered by an
 * event. */
static void pass_by_the_threads_stream(void)
{
  kjit_stream *thread;
  world_stream first = non_blocking(0);
  world_array array = array_on(0, first.stream);
  launch_on(&first, &array);
  world_release_array(&array);
  oracle.memory_limit = 4096;
  (void)WORLD_CALL(kjit_get_thread_stream, world.devices[0], &thread);
  array = array_on(0, thread);
  if (!array.array) return;
  world_release_array(&array);
  (void)array_on(0, NULL);
}

static float host[32 * 64];
static int64_t extents[] = { 32, 32 }, strides[] = { 64, 2 };
static kjit_tensor columns = { .data = host,
                               .device_type = 1,
                               .rank = 2,
                               .code = 2,
                               .bits = 32,
                               .lanes = 1,
                               .shape = extents,
                               .strides = strides };

/* The destroyed stream has only queued copies of tensors through intermediate memory. */
static void destroy_a_stream_of_copies(void)
{
  world_stream own = non_blocking(0), other = non_blocking(0);
  world_array first = world_make_array(0, KJIT_MEMORY_DEVICE, (int64_t[]){ 32, 64 }, own.stream),
              part = world_slice(&first, (kjit_array_slice[]){ { 0, 32, 1 }, { 0, 64, 2 } });
  kjit_arg to = kjit_arg_tensor(kjit_get_tensor(part.array)), from = kjit_arg_tensor(&columns);
  world_stream copies = non_blocking(0);
  world_order(first.memory, copies.native);
  (void)WORLD_CALL(kjit_copy_async, world.context, &to, &from, copies.stream);
  world_destroy_stream(&copies);
  (void)array_on(0, other.stream);
}

/* The copy to the other GPU is queued, but the wait for it fails. */
static void fail_a_copy_between_devices(void)
{
  for (int fail_at = 1; fail_at < 60; fail_at++) {
    world_array source = array_on(0, NULL), target = array_on(1, NULL);
    world_array part = every_other_column(&source), there = every_other_column(&target);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    (void)world_copy(1, NULL, &there, &part, false);
    world_array next = world_make_array(0, KJIT_MEMORY_DEVICE, (int64_t[]){ 32, 16 }, NULL);
    world_array after = world_make_array(1, KJIT_MEMORY_DEVICE, (int64_t[]){ 32, 16 }, NULL);
    world_array *all[] = { &next, &after, &part, &there, &source, &target };
    for (int i = 0; i < 6; i++) world_release_array(all[i]);
    (void)world_synchronize_device(0);
    (void)world_synchronize_device(1);
  }
}

/* The released memory was used by another GPU, on which a stream is captured. */
static void release_what_another_device_uses(void)
{
  world_stream captured = non_blocking(1), user = non_blocking(1);
  world_array array = array_on(0, NULL);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  launch_on(&user, &array);
  world_release_array(&array);
  (void)array_on(0, NULL);
}

/* The same, but streams on several devices have used the memory. In kjit's lists they have other
 * positions than the captured stream. */
static void release_what_many_devices_use(void)
{
  world_stream captured = non_blocking(1);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  for (uint32_t i = 1; i < ORACLE_DEVICES; i++) {
    world_stream user = non_blocking(i);
    world_array array = array_on(0, NULL);
    launch_on(&user, &array);
    world_release_array(&array);
  }
  (void)array_on(0, NULL);
  (void)array_on(0, NULL);
}

static void delete_what_the_default_stream_uses(void)
{
  world_stream captured = non_blocking(0), own = non_blocking(0);
  world_stream none = { .device = 0 };
  world_array array = world_take(0, own.stream, shape);
  launch_on(&none, &array);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  world_release_array(&array);
}

static void delete_after_a_failed_wait(void)
{
  for (int fail_at = 1; fail_at < 12; fail_at++) {
    world_stream own = non_blocking(0), other = non_blocking(1);
    world_array array = world_take(0, own.stream, shape);
    launch_on(&other, &array);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    world_release_array(&array);
    world_destroy_stream(&own);
    world_destroy_stream(&other);
  }
}

/* Memory that does not come from the pool is not freed if the wait for its uses fails. */
static void free_after_a_failed_wait(void)
{
  for (int fail_at = 1; fail_at < 12; fail_at++) {
    world_stream other = non_blocking(1);
    world_array array = world_make_array(0, KJIT_MEMORY_SHARED, shape, NULL);
    launch_on(&other, &array);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    world_release_array(&array);
    world_destroy_stream(&other);
  }
}

static void free_what_a_copy_reads(void)
{
  world_stream stream = non_blocking(0);
  world_array there = array_on(0, stream.stream), part = every_other_column(&there);
  world_array host = world_make_array(ORACLE_DEVICES, KJIT_MEMORY_DEVICE, shape, NULL),
              some = every_other_column(&host);
  (void)world_copy(0, stream.stream, &part, &some, true);
  world_release_array(&some);
  world_release_array(&host);
}

/* An array is exported to another process although another device uses it. */
static void export_what_another_device_uses(void)
{
  world_stream user = non_blocking(1);
  world_array array = array_on(0, NULL);
  kjit_array_handle handle;
  launch_on(&user, &array);
  if (WORLD_CALL(kjit_export_array, array.array, &handle) != KJIT_OK) abort();
  oracle_expect_unused(array.memory->block, &oracle.host, "an array is exported to a process");
}

static world_array opened_array(void)
{
  world_array source = array_on(0, NULL), made = { 0 };
  kjit_array_handle handle;
  if (WORLD_CALL(kjit_export_array, source.array, &handle) != KJIT_OK) abort();
  world_change_process(&handle);
  if (WORLD_CALL(kjit_import_array, world.context, &handle, &made.array) != KJIT_OK) abort();
  made.memory = world_begin_memory(made.array, 0, oracle.legacy[0]);
  return made;
}

static void close_what_the_default_stream_uses(void)
{
  world_stream captured = non_blocking(0), none = { .device = 0 };
  world_array array = opened_array();
  launch_on(&none, &array);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  world_release_array(&array);
}

static void unpin_what_another_device_uses(void)
{
  world_stream captured = non_blocking(1), user = non_blocking(1);
  world_array array = world_make_array(0, KJIT_MEMORY_PINNED, shape, NULL),
              there = array_on(1, user.stream);
  (void)world_copy(1, user.stream, &there, &array, true);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  world_release_array(&array);
}

static void export_what_another_device_used(void)
{
  world_stream captured = non_blocking(1), none = { .device = 1 };
  world_array array = array_on(0, NULL);
  launch_on(&none, &array);
  (void)WORLD_CALL(kjit_begin_capture, captured.stream);
  (void)world_give(&array, 0, NULL);
}

/* A copy between GPUs gathers elements on the default stream of the source's device, and the wait
 * for this stream fails. */
static void fail_to_wait_for_a_gather(void)
{
  for (int fail_at = 1; fail_at < 40; fail_at++) {
    world_stream own = non_blocking(0);
    world_array source = array_on(0, own.stream), target = array_on(1, NULL);
    world_array part = every_other_column(&source), there = every_other_column(&target);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_with = CUDA_UNKNOWN;
    (void)world_copy(1, NULL, &there, &part, false);
    world_release_array(&part);
    world_release_array(&source);
    world_array next = array_on(0, own.stream);
    world_release_array(&next);
    world_release_array(&there);
    world_release_array(&target);
    (void)world_synchronize_device(0);
    (void)world_synchronize_device(1);
    world_destroy_stream(&own);
  }
}

/* A prepared launch has queued its kernel. Then copying host arrays back fails, and so does the
 * wait. */
static void fail_after_a_prepared_kernel(void)
{
  /* the failing call is counted from the end, because the pools are filled then */
  for (int fail_at = 20; fail_at; fail_at--) {
    world_stream own = non_blocking(0), other = non_blocking(0);
    world_array array = array_on(0, own.stream),
                host = world_make_array(ORACLE_DEVICES, KJIT_MEMORY_DEVICE, shape, NULL);
    kjit_arg arguments[] = { kjit_arg_array(array.array), kjit_arg_array(host.array) };
    kjit_launch_config config = { .size_bytes = sizeof config,
                                  .device = world.devices[0],
                                  .stream = own.stream };
    kjit_prepared *prepared;
    if (WORLD_CALL(kjit_prepare_launch, world.kernels[1], &config, arguments, 2, &prepared) !=
        KJIT_OK)
      abort();
    world_order(array.memory, other.native);
    oracle_here.fail_at = fail_at;
    oracle_here.fail_more = 1000;
    oracle_here.fail_with = CUDA_UNKNOWN;
    (void)WORLD_CALL(kjit_run_prepared, prepared, other.stream);
    WORLD_END(kjit_destroy_prepared, prepared);
    world_release_array(&array);
    array = array_on(0, own.stream);
    world_release_array(&array);
    world_release_array(&host);
    (void)world_synchronize_device(0);
    world_destroy_stream(&own);
    world_destroy_stream(&other);
  }
}

static void make_on_default(void) { (void)array_on(0, NULL); }

/* Memory is free in the order of one thread's per-thread stream, which has waited for an event and
 * has done no work since. Another thread can only wait for the default stream, which follows the
 * work of the per-thread stream, but not its waits. */
static void take_what_a_threads_stream_waits_for(void)
{
  kjit_stream *thread;
  world_stream user = non_blocking(0);
  (void)WORLD_CALL(kjit_get_thread_stream, world.devices[0], &thread);
  world_array array = array_on(0, thread);
  launch_on(&user, &array);
  world_release_array(&array);
  oracle.memory_limit = 4096;
  elsewhere = make_on_default;
  do_elsewhere();
}

static void pass_by_an_event(void)
{
  world_stream own = non_blocking(0), other = non_blocking(0);
  world_array array = array_on(0, own.stream);
  launch_on(&own, &array);
  launch_on(&other, &array);
  world_release_array(&array);
  array = array_on(0, own.stream);
  launch_on(&own, &array);
  (void)world_synchronize(own.stream, own.native);
}

/* ---- host functions ---- */

static void call_a_function(void)
{
  world_begin("a host function");
  pthread_mutex_lock(&oracle.mutex);
  oracle_run_function();
  pthread_mutex_unlock(&oracle.mutex);
  (void)world_end(KJIT_OK);
}

static void make_from_columns(void)
{
  kjit_array *made;
  (void)WORLD_CALL(kjit_create_array_from, world.devices[0], &columns, NULL, &made);
}

/* A host function of the stream returns the pinned memory of a copy, and another thread takes the
 * memory before this function has returned. */
static void take_what_a_function_gives(void)
{
  world_stream own = non_blocking(0);
  world_array array = array_on(0, own.stream);
  kjit_arg to = kjit_arg_array(array.array), from = kjit_arg_tensor(&columns);
  (void)WORLD_CALL(kjit_copy_async, world.context, &to, &from, own.stream);
  call_a_function(); /* which gathers */
  elsewhere = make_from_columns;
  oracle_in_function = do_elsewhere;
  call_a_function();
}

static world_array copied;
static void release_copied(void) { world_release_array(&copied); }

/* A host function frees memory that it has written. A wait for the stream also waits for the
 * function. */
static void free_what_a_function_writes(void)
{
  world_stream own = non_blocking(0);
  world_array source = world_make_array(0, KJIT_MEMORY_PINNED, shape, NULL);
  copied = world_make_array(0, KJIT_MEMORY_PINNED, shape, NULL);
  (void)world_copy(0, own.stream, &copied, &source, true);
  elsewhere = release_copied;
  oracle_in_function = do_elsewhere;
  call_a_function();
  if (!is_late) oracle_violation("memory is freed while a function of a stream uses it");
}

/* ---- the table ---- */

static const row rows[] = {
  { "shared_slot", use_many_streams, NULL },
  { "shared_slot_export", export_among_many_streams, NULL },
  { "forgotten_join", forget_a_join, NULL },
  { "by_default_stream", pass_by_the_default_stream, NULL },
  { "by_thread_stream", pass_by_the_threads_stream, NULL },
  { "stream_of_copies", destroy_a_stream_of_copies, NULL },
  { "failed_peer_copy", fail_a_copy_between_devices, NULL },
  { "used_elsewhere", release_what_another_device_uses, NULL },
  { "used_on_many", release_what_many_devices_use, NULL },
  { "deleter_default", delete_what_the_default_stream_uses, NULL },
  { "deleter_failed_wait", delete_after_a_failed_wait, NULL },
  { "free_failed_wait", free_after_a_failed_wait, NULL },
  { "host_array_copied", free_what_a_copy_reads, NULL },
  { "process_elsewhere", export_what_another_device_uses, NULL },
  { "opened_default", close_what_the_default_stream_uses, NULL },
  { "unpinned_elsewhere", unpin_what_another_device_uses, NULL },
  { "exported_elsewhere", export_what_another_device_used, NULL },
  { "failed_prepared", fail_after_a_prepared_kernel, NULL },
  { "failed_gather", fail_to_wait_for_a_gather, NULL },
  { "other_threads_wait", take_what_a_threads_stream_waits_for, NULL },
  { "event", pass_by_an_event, NULL },
  { "given_by_function", take_what_a_function_gives, NULL },
  { "used_by_function", free_what_a_function_writes, NULL },
};

int main(int count, char **arguments)
{
  return run_programs(rows, sizeof rows / sizeof *rows, count, arguments);
}

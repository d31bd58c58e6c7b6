/* Records a run of a formula as one operation if a CPU stream is captured. kjit copies bitmaps
 * before and after the formula's kernel (bitmaps.c), so a graph that contained only the kernel
 * would use copies that are out of date. */
#include <stdlib.h>
#include <string.h>

#include "formula/formula.h"
#include "stream/stream.h"

typedef struct captured_run {
  kj_operation operation;
  kjit_formula *formula;
  kjit_column result;
  kjit_formula_run options;
  int64_t rows;
  kjit_column columns[];
} captured_run;

/* Runs the recorded formula when the graph is launched. The stream that was captured may be
 * destroyed by then, and a run on the CPU does not need a stream. */
static kjit_status repeat(kj_operation *operation, kjit_stream *stream)
{
  const captured_run *run = (captured_run *)operation;
  (void)stream;
  return kjit_run_formula(run->formula, run->columns, &run->result, run->rows, &run->options);
}

static void destroy(kj_operation *operation)
{
  kjit_destroy_formula(((captured_run *)operation)->formula);
  free(operation);
}

kjit_status kf_record_run(const kjit_formula *formula, const kjit_column *columns,
                          const kjit_column *result, int64_t rows, const kjit_formula_run *options)
{
  kj_diagnostics diagnostics = { 0 };
  const size_t bytes = columns ? formula->column_count * sizeof *columns : 0;
  captured_run *run = calloc(1, sizeof *run + bytes);
  if (!run) return ki_fail_call(formula->context, KJIT_ERROR_MEMORY, "out of memory");
  run->operation = (kj_operation){ .run = repeat, .destroy = destroy, .form = formula };
  run->formula = (kjit_formula *)formula;
  run->result = *result;
  run->options = *options;
  run->options.size_bytes = sizeof run->options;
  run->options.stream = NULL;
  run->rows = rows;
  if (bytes) memcpy(run->columns, columns, bytes);
  uint32_t before = atomic_fetch_add_explicit(&run->formula->references, 1, memory_order_relaxed);
  KJ_ASSERT(before && options->device);
  (void)before;
  (void)kj_record_operation(options->stream, &run->operation, &diagnostics);
  return ki_finish_call(formula->context, &diagnostics);
}

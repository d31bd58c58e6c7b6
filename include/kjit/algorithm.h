/* kjit/algorithm.h: reductions, scans, sorts, searches, products and other algorithms on whole
 * arrays. It includes one header for each group of algorithms.
 *
 * status.h has the rules that hold for every function. docs/algorithms.md describes each algorithm.
 *
 * A call takes operands, options and, for many algorithms, an operator. It is asynchronous on the
 * stream in the options, like a launch. With options.plan, kjit only prepares the call, and
 * kjit_run_plan runs it any number of times. Results have the same meaning on GPUs and on the CPU.
 * kjit compiles the code for the operand types, funcs and operators at the first call that needs it
 * and caches it like kernel code. */
#ifndef KJIT_ALGORITHM_H
#define KJIT_ALGORITHM_H

#include <kjit/operand.h>
#include <kjit/product.h>
#include <kjit/random.h>
#include <kjit/reduce.h>
#include <kjit/sort.h>
#include <kjit/sparse.h>

#endif

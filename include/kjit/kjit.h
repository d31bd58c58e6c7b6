/* kjit: kernels for GPU and CPU, compiled when they are called. Includes the whole public API. */
#ifndef KJIT_H
#define KJIT_H
#include <kjit/algorithm.h>
#include <kjit/builder.h>
#include <kjit/cache.h>
#include <kjit/code.h>
#include <kjit/compile.h>
#include <kjit/formula.h>
#include <kjit/function.h>
#include <kjit/launch.h>
#include <kjit/memory.h>
#include <kjit/module.h>
#include <kjit/runtime.h>
#include <kjit/status.h>
#include <kjit/stream.h>
#endif

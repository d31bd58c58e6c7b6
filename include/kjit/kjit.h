/* kjit: kernels for GPU and CPU, compiled when they are called. Includes the whole public API. */
#ifndef KJIT_H
#define KJIT_H
#include <kjit/cache.h>
#include <kjit/compile.h>
#include <kjit/launch.h>
#include <kjit/module.h>
#include <kjit/runtime.h>
#include <kjit/status.h>
#endif

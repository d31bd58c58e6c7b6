/* cmocka and what has to come before it. */
#ifndef KJ_TEST_H
#define KJ_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif

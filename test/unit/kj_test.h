/* Includes cmocka and the headers that must precede it. */
#ifndef KJ_TEST_H
#define KJ_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif

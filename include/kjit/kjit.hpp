/* kjit/kjit.hpp: kjit for C++17 and later, header only. Handles own their objects, failures are
 * exceptions, and a kernel is called like a function. Arguments can be numbers, vectors, spans,
 * mdspans and arrays of kjit. Each algorithm is a function, such as kjit::reduce(x, kjit::add).
 *
 *   kjit::context context;
 *   kjit::module module = context.parse("axpy.kir", text);
 *   std::vector<float> r(1000), x(1000), y(1000);
 *   module.kernel("axpy")(r, 2.5f, x, y);
 *
 * This header includes the files in kjit/cpp. It uses only the C interface. A program can use both;
 * get() of a handle returns the C object. The rules of status.h for threads and processes apply
 * here as well.
 *
 * A handle keeps the objects alive that it depends on: a kernel keeps its module, and all objects
 * keep the context, which ends with the last handle. Every call rejects an empty handle (MISUSE),
 * which was default-constructed or moved from. A handle for an existing C object keeps only the
 * objects that its constructor receives. */
#ifndef KJIT_KJIT_HPP
#define KJIT_KJIT_HPP

/* Turns off warnings of GCC about template parameters with the name of something global in the
 * program, and about the C casts in the inline functions of the C headers. */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wcast-qual"
#endif

#include <kjit/cpp/algorithms.hpp>
#include <kjit/cpp/formula.hpp>
#include <kjit/cpp/solve.hpp>

#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#endif

/* Parses arrays whose elements are on the command line: `[1, 2.5, 3]`, `[[1, 2], [3,
 * 4]]:as=f32`. */
#ifndef TOOL_LITERAL_H
#define TOOL_LITERAL_H

#include <driver/array.h>

/* Scans an array, beginning at its '['. Without `:as=TYPE` the elements have the type of the typed
 * values, or else i64, u64, bool, or f64 if a value has a point or an exponent. */
bool tool_scan_literal(tool_scanner *scanner, tool_array *array);

#endif

/* kjit/cpp/error.hpp: the exception of kjit.hpp. Include kjit/kjit.hpp, which includes this file.
 */
#ifndef KJIT_CPP_ERROR_HPP
#define KJIT_CPP_ERROR_HPP

#if __cplusplus < 201703L
#error "kjit/kjit.hpp needs C++17 or later: -std=c++17"
#elif !defined(__cpp_exceptions)
#error "kjit/kjit.hpp needs exceptions; without exceptions use the C interface, kjit/kjit.h"
#endif

#include <kjit/kjit.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace kjit {

/* Exception of every failing call. It has the status; what() returns the name of the status and the
 * diagnostics with source lines and carets. The class is visible, so that a library can catch
 * exceptions of another library with hidden symbols. */
class KJIT_API error : public std::runtime_error {
public:
  /* Creates an exception for a status, with the text for what(). */
  error(kjit_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  /* Returns the status of the call. */
  kjit_status status() const noexcept { return status_; }

private:
  kjit_status status_;
};

namespace detail {

/* Owns a string that a copy function of the C interface returned. */
using copied_text = std::unique_ptr<char, void (*)(char *)>;
inline copied_text take_text(char *text)
{
  return copied_text(text, [](char *p) { kjit_free(nullptr, p); });
}

/* Throws an exception for an error that the C++ interface itself detects. */
[[noreturn]] inline void fail(kjit_status status, const std::string &message)
{
  throw error(status, std::string(kjit_get_status_name(status)) + "\n" + message);
}

} // namespace detail

/* Throws an exception if status, which a call on the context returned, is not KJIT_OK. Programs can
 * also use it for calls of the C interface. context can be NULL. */
inline void check(kjit_context *context, kjit_status status)
{
  if (status == KJIT_OK) return;
  std::string text = kjit_get_status_name(status);
  const detail::copied_text diagnostics =
    detail::take_text(context ? kjit_copy_diagnostics_text(context) : nullptr);
  if (diagnostics) text.append("\n").append(diagnostics.get());
  /* The handle is empty. The C interface has no diagnostic for this error, because the handle has
   * no context. */
  else if (!context && status == KJIT_ERROR_MISUSE)
    text.append("\nthe handle is empty: it was moved from or default-constructed");
  throw error(status, text);
}

} // namespace kjit
#endif

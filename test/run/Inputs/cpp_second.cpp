/* A second translation unit with kjit.hpp, for cpp_handles.cpp. */
#include <kjit/kjit.hpp>

kjit::array<int> doubled(const kjit::array<int> &x);
kjit::array<int> doubled(const kjit::array<int> &x)
{
  return kjit::map("a + b", { kjit::sort(x), kjit::sort(x, "a < b") });
}

/* Arguments that kjit.hpp rejects, one for each CASE: programs that must not compile. */
#include <kjit/kjit.hpp>

void use(const kjit::kernel &kernel, const kjit::function &func)
{
#if CASE == 0
  std::vector<float> fine(3);
  kernel(fine, func.call<int>(1));
#elif CASE == 1
  /* kjit has no such type, and the value must not be truncated */
  kernel(static_cast<unsigned __int128>(1));
#elif CASE == 2
  (void)func.call<std::complex<float>>(1.0f); /* two values */
#elif CASE == 3
  const std::vector<float> same(3);
  kernel(kjit::out(same)); /* written, and const */
#elif CASE == 4
  kernel(std::vector<bool>(3)); /* std::vector<bool> has no elements in memory */
#elif CASE == 5
  /* a handle that keeps no other object alive must be constructed explicitly */
  kjit::kernel made = kernel.get();
#elif CASE == 6
  /* the temporary vector would be used after its end */
  (void)kernel.prepare(std::vector<float>(3));
#elif CASE == 7
  kernel.prepare().set(0, std::array<float, 3>()); /* the same */
#endif
}

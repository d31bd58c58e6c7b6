/* What kjit.hpp does not take, one for each CASE: programs that must not compile. */
#include <kjit/kjit.hpp>

void use(const kjit::kernel &kernel, const kjit::function &func)
{
#if CASE == 0
  std::vector<float> fine(3);
  kernel(fine, func.call<int>(1));
#elif CASE == 1
  kernel(static_cast<unsigned __int128>(1)); /* of no type that kjit has: nothing is cut off */
#elif CASE == 2
  (void)func.call<std::complex<float>>(1.0f); /* two values */
#elif CASE == 3
  const std::vector<float> same(3);
  kernel(kjit::out(same)); /* written, and const */
#elif CASE == 4
  kernel(std::vector<bool>(3)); /* which has no elements in memory */
#elif CASE == 5
  kjit::kernel made = kernel.get(); /* a handle that keeps nothing is made explicitly only */
#elif CASE == 6
  (void)kernel.prepare(std::vector<float>(3)); /* which would be used after its end */
#elif CASE == 7
  kernel.prepare().set(0, std::array<float, 3>()); /* the same */
#endif
}

// The fragment of C++ in docs/embedding.md; where there is no GPU it ends at the first line that needs one.
#include <cstdio>
#include <kjit/kjit.hpp>

static const char *text = "kernel axpy(r, a, x, y) { for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] } }";

static void fragment()
{
  kjit::context context;
  kjit::module module = context.parse("axpy.kir", text);
  kjit::kernel axpy = module.kernel("axpy");
  std::vector<float> r(1000), x(1000), y(1000);
  axpy(r, 2.5f, x, y);                                     // where arrays are, else the first device
  axpy.on(context.cpu()).grid(4).block(256)(r, 2.5f, x, y);
  auto a = kjit::to_device(context.cuda(), x);             // kjit::array<float>
  axpy(a, kjit::number(2), a, a);                          // a plain number, as a literal
  x = a.to_vector();
}

int main()
{
  try {
    fragment();
  } catch (const kjit::error &error) {
    if (error.status() != KJIT_ERROR_NO_DEVICE) return std::puts(error.what()), 1;
  }
  std::puts("done");
}

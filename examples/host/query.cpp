// query.cpp: the C++ version of host.c: a query engine compiles a user's expression, CASE WHEN a +
// b > limit THEN 0 ELSE a + b END, to a kernel and runs it over batches of columns. The kernel has
// no types: the first batch of i64 columns and the first batch of f32 columns each create a
// specialization, and later batches find it in the cache. query [cpu|cuda] chooses the device.
#include <kjit/kjit.hpp>

#include <cstring>
#include <iostream>

constexpr std::size_t rows = 100003;
constexpr int batches = 3;

template <typename T>
bool run_batches(const kjit::context &context, const kjit::kernel &udf, const char *name)
{
  std::vector<T> out(rows), a(rows), b(rows);
  for (int batch = 0; batch < batches; batch++) {
    double limit = 10 + batch;
    for (std::size_t i = 0; i < rows; i++) {
      a[i] = T(int(i * 37 % 101) + batch) / T(4);
      b[i] = T(int(i % 7) - batch) / T(2);
    }
    auto before = context.statistics();
    udf(kjit::out(out), a, b,
        kjit::number(limit)); // the limit takes the type of the columns, like a literal
    auto after = context.statistics();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < rows; i++)
      wrong += out[i] != (a[i] + b[i] > T(limit) ? T(0) : a[i] + b[i]);
    std::cout << name << " batch " << batch << ": "
              << (after.compilations > before.compilations ? "compiled"
                  : after.memory_hits > before.memory_hits ? "from the cache"
                                                           : "neither compiled nor found")
              << ", " << wrong << " of " << rows << " rows wrong\n";
    if (wrong) return false;
  }
  return true;
}

int main(int argc, char **argv)
try {
  bool is_cuda = argc > 1 && !std::strcmp(argv[1], "cuda");
  if (argc > 2 || (argc == 2 && !is_cuda && std::strcmp(argv[1], "cpu"))) {
    std::cerr << "usage: query [cpu|cuda], not '" << argv[argc - 1] << "'\n";
    return 2;
  }
  kjit::context context;
  kjit::module module = context.parse("query 17", "kernel udf(out, a, b, limit) {\n"
                                                  "  for i in grid_range(len(out)) {\n"
                                                  "    let s = a[i] + b[i]\n"
                                                  "    out[i] = s > limit ? 0 : s\n"
                                                  "  }\n}\n");
  kjit::kernel udf = module.kernel("udf").on(is_cuda ? context.cuda() : context.cpu());
  bool is_right =
    run_batches<std::int64_t>(context, udf, "i64") && run_batches<float>(context, udf, "f32");
  auto counts = context.statistics();
  std::cout << "launches " << counts.launches << ", compilations " << counts.compilations
            << ", hits " << counts.memory_hits << "\n";
  return is_right ? 0 : 1;
} catch (const kjit::error &error) {
  std::cerr << error.what() << "\n";
  return 1;
}

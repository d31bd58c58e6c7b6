/* kjit.hpp: every kind of argument, handles, failures; on the device that the argument names. */
#include <kjit/kjit.h>

/* A function that a program had before it used kjit.hpp, with a name that kjit.hpp has as well. */
inline void check(kjit_context *, kjit_status) {}
template <typename... Ts> void make_argument(Ts &&...) {}

#include <kjit/kjit.hpp>

#include <cstdio>
#include <cstring>
#include <random>
#if __cplusplus >= 202002L
#include <span>
#endif

static int failures;
#define EXPECT(condition) \
  do { \
    if (!(condition)) std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), failures++; \
  } while (0)

static const char text[] =
  "kernel axpy(r, a, x, y) { for i in grid_range(len(r)) { r[i] = a * x[i] + y[i] } }\n"
  "kernel put(r, v) @block(1) @grid(1) { r[0] = v }\n"
  "kernel parts(r, v) @block(1) @grid(1) { r[0] = v.real\n r[1] = v.imag }\n"
  "kernel sums(r, x) { for i in grid_range(len(r)) { var s = zero(dtype(r))\n for k in "
  "range(x.shape[1]) { s += x[i, k] }\n r[i] = s } }\n"
  "kernel mapped(r, f: func, x) { for i in grid_range(len(r)) { r[i] = f(x[i]) } }\n"
  "kernel where(r) { r[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x }\n"
  "kernel reversed(r) @block(64) { shared t: i32[]\n t[threadIdx.x] = r[threadIdx.x]\n "
  "syncthreads()\n r[threadIdx.x] = t[63 - threadIdx.x] }\n"
  "func half(v) { return v / 2 }\n"
  "func count(x: f64[:]) { return i64(len(x)) }\n"
  "func set_first(x) { x[0] = 5\n return 1 }\n"
  "func is_large(v) { return v > 10 }\n"
  "kernel failing(r) @block(1) @grid(1) { raise \"no\" }\n";

/* The interface of std::mdspan in C++17: rows with gaps between them. */
struct grid2d {
  float *first;
  std::size_t extents[2], steps[2];
  static constexpr std::size_t rank() { return 2; }
  float *const &data_handle() const { return first; } /* returns a reference, like std::mdspan */
  std::size_t extent(std::size_t d) const { return extents[d]; }
  std::size_t stride(std::size_t d) const { return steps[d]; }
};

template <typename F> static kjit_status status_of(F call, const char *says)
{
  try {
    call();
  } catch (const kjit::error &error) {
    if (!std::strstr(error.what(), says))
      std::fprintf(stderr, "not said: %s\n%s\n", says, error.what()), failures++;
    return error.status();
  }
  return KJIT_OK;
}

template <typename T>
static void check_scalar(const kjit::module &module, const kjit::device &device, T value)
{
  T r[1] = {};
  module.kernel("put").on(device)(r, value);
  EXPECT(r[0] == value);
}

static void check_arguments(const kjit::module &module, const kjit::device &device)
{
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> r(1000), x(1000), y(1000);
  for (auto &v : x) v = uniform(random);
  for (auto &v : y) v = uniform(random);
  const std::vector<float> &same = x;
  kjit::kernel axpy = module.kernel("axpy").on(device);
  axpy(r, 2.5f, same, std::move(y));
  for (std::size_t i = 0; i < 1000; i++) EXPECT(std::abs(r[i] - (2.5f * x[i] + y[i])) <= 1e-6f);
  axpy(kjit::out(r), kjit::number(2), x, x);
  for (std::size_t i = 0; i < 1000; i++) EXPECT(std::abs(r[i] - 3 * x[i]) <= 1e-6f);

  std::array<double, 3> d{};
  double e[3] = { 1, 2, 3 };
  axpy(d, 2.0, e, e);
  EXPECT(d[0] == 3 && d[1] == 6 && d[2] == 9);
#if __cplusplus >= 202002L
  axpy(std::span<double>(e), 1, std::span<const double>(d), std::span<double>(d));
  EXPECT(e[0] == 6 && e[2] == 18);
#endif

  std::vector<float> m(40);
  for (std::size_t i = 0; i < 40; i++) m[i] = float(i);
  float sums[4] = {}, turned[5] = {};
  module.kernel("sums").on(device)(sums, kjit::view<const float, 2>(m.data(), { 4, 10 }));
  for (int i = 0; i < 4; i++) EXPECT(sums[i] == float(100 * i + 45));
  module.kernel("sums").on(device)(turned, kjit::view<float, 2>(m.data(), { 5, 4 }, { 2, 10 }));
  for (int i = 0; i < 5; i++) EXPECT(turned[i] == float(4 * 2 * i + 60));
  module.kernel("sums").on(device)(sums, grid2d{ m.data(), { 4, 3 }, { 10, 1 } });
  for (int i = 0; i < 4; i++) EXPECT(sums[i] == float(30 * i + 3));

  check_scalar(module, device, true);
  check_scalar<std::int8_t>(module, device, -5);
  check_scalar<std::int16_t>(module, device, -500);
  check_scalar<std::int32_t>(module, device, -50000);
  check_scalar<long>(module, device, -5000000000);
  check_scalar<long long>(module, device, -5000000000);
  check_scalar<std::uint8_t>(module, device, 250);
  check_scalar<std::uint16_t>(module, device, 65000);
  check_scalar<std::uint32_t>(module, device, 4000000000u);
  check_scalar<std::uint64_t>(module, device, ~std::uint64_t(0));
  check_scalar(module, device, 1.25f);
  check_scalar(module, device, 1e300);
  double parts[2] = {};
  module.kernel("parts").on(device)(parts, std::complex<double>(3, -4));
  EXPECT(parts[0] == 3 && parts[1] == -4);
  module.kernel("parts").on(device)(parts, std::complex<float>(1, 2));
  EXPECT(parts[0] == 1 && parts[1] == 2);

  module.kernel("mapped").on(device)(d, module.function("half"), e);
  EXPECT(d[1] == e[1] / 2);
  module.kernel("mapped").on(device)(d, module.function("sqrt"), kjit::view<double>(e, { 3 }));
  EXPECT(d[2] == std::sqrt(e[2]));
}

static void check_launches(const kjit::context &context, const kjit::module &module,
                           const kjit::device &device)
{
  std::int32_t r[64];
  module.kernel("where").on(device).grid(4).block(16)(r);
  for (int i = 0; i < 64; i++) EXPECT(r[i] == i / 16);
  kjit::stream stream = device.create_stream();
  kjit::array<std::int32_t> a = kjit::to_device(device, r);
  kjit::kernel reversed = module.kernel("reversed").on(stream).grid(1).shared(64 * sizeof *r);
  reversed(a);
  stream.synchronize();
  std::vector<std::int32_t> back = a.to_vector(stream);
  for (std::size_t i = 0; i < 64; i++) EXPECT(back[i] == r[63 - i]);

  kjit::array<double> zeros(device, std::vector<std::int64_t>{ 3, 4 });
  zeros.fill(1.5);
  kjit::array<double> copy = zeros, flat = zeros.reshape({ 12 });
  EXPECT(copy.get() == zeros.get() && flat.shape() == std::vector<std::int64_t>{ 12 } &&
         zeros.size() == 12);
  zeros = kjit::array<double>();
  EXPECT(flat.to_vector() == std::vector<double>(12, 1.5));
  flat.copy_from(std::vector<double>(12, 2));
  EXPECT(copy.to_vector()[11] == 2);
  EXPECT(device.info().kind == kjit_get_tensor(copy.get())->device_type);
  EXPECT(context.statistics().launches > 0 && context.device_count(KJIT_DEVICE_CPU) == 1);
  EXPECT(module.text().find("kernel axpy") != std::string::npos);
}

static void check_failures(const kjit::context &context, const kjit::module &module,
                           const kjit::device &device)
{
  std::vector<float> r(4);
  const std::vector<float> x(4);
  EXPECT(status_of([&] { context.parse("bad.kir", "kernel k( {"); }, "bad.kir:1:") ==
         KJIT_ERROR_SYNTAX);
  EXPECT(status_of([&] { module.kernel("missing"); }, "missing") == KJIT_ERROR_NAME);
  EXPECT(status_of([&] { module.kernel("axpy").on(device)(r, 1, x); }, "axpy") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { module.kernel("put").on(device)(x, 1); }, "writes parameter `r`") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { module.kernel("put").on(device)(std::vector<float>(4), 1); }, "`r`") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(status_of(
           [&] {
             module.kernel("failing").on(device)(r);
             device.synchronize();
           },
           "no") == KJIT_ERROR_KERNEL);
  EXPECT(status_of([&] { kjit::to_device(device, x).copy_from(std::vector<float>(5)); }, "bytes") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(
    status_of([&] { context.check(kjit_get_device(context.get(), KJIT_DEVICE_CUDA, 99, nullptr)); },
              "") != KJIT_OK);
  kjit_config config = kjit::context::config();
  config.size_bytes = 0;
  EXPECT(status_of([&] { kjit::context failed(config); }, "MISUSE") == KJIT_ERROR_MISUSE);
}

static void check_funcs(const kjit::module &module)
{
  std::vector<double> x(17);
  EXPECT(module.function("half").call<double>(5.0) == 2.5);
  EXPECT(module.function("half").call<float>(5.0f) == 2.5f);
  EXPECT(module.function("count").call<std::int64_t>(x) == 17);
  EXPECT(module.function("is_large").call<bool>(11) && !module.function("is_large").call<bool>(9));
  EXPECT(status_of([&] { module.function("half").call<float>(5.0); }, "returns f64, not f32") ==
         KJIT_ERROR_TYPE);
  const std::vector<double> same(3);
  EXPECT(status_of([&] { module.function("set_first").call<std::int32_t>(same); },
                   "the func writes parameter `x`, and the argument is const") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(same[0] == 0);
  EXPECT(module.function("set_first").call<std::int32_t>(x) == 1 && x[0] == 5);
}

/* Empty handles, default-constructed or moved from, are rejected without a crash. */
static void check_empty(kjit::context context, const kjit::device &given)
{
  float r[1] = {};
  kjit::module module = context.parse("empty.kir", text), taken = std::move(module);
  kjit::kernel kernel = taken.kernel("put").on(given), other = std::move(kernel);
  kjit::function func = taken.function("half"), other_func = std::move(func);
  kjit::device device = given, other_device = std::move(device);
  kjit::array<float> none;
  kjit::stream stream;
  const auto is_refused = [](auto call) { return status_of(call, "") == KJIT_ERROR_MISUSE; };
  EXPECT(!module.get() && !kernel.get() && !func.get() && !device.get() && !none.size());
  EXPECT(is_refused([&] { module.kernel("put"); }) && is_refused([&] { module.function("half"); }));
  EXPECT(is_refused([&] { (void)module.text(); }) && is_refused([&] { kernel(r, 1.0f); }));
  EXPECT(is_refused([&] { func.call<double>(1.0); }) && is_refused([&] { device.synchronize(); }));
  EXPECT(is_refused([&] { (void)device.info(); }) && is_refused([&] { device.create_stream(); }));
  EXPECT(is_refused([&] { kjit::array<float>(device, { 3 }); }));
  EXPECT(is_refused([&] { (void)none.to_vector(); }) && is_refused([&] { none.fill(1); }));
  EXPECT(is_refused([&] { none.copy_from(r); }) && is_refused([&] { none.reshape({ 1 }); }));
  EXPECT(is_refused([&] { stream.synchronize(); }));
  EXPECT(status_of([&] { other(none, 1.0f); }, "") == KJIT_ERROR_ARGUMENT);
  kjit::context last = std::move(context);
  EXPECT(is_refused([&] { context.parse("empty.kir", text); }));
  EXPECT(is_refused([&] { context.cpu(); }) && is_refused([&] { (void)context.statistics(); }));
  EXPECT(context.device_count(KJIT_DEVICE_CPU) == 0);
  other(r, 7.0f);
  EXPECT(r[0] == 7 && other_func.call<double>(3.0) == 1.5 && other_device.info().name);
}

/* Every object keeps its context alive, and all objects on which it depends. */
static void check_lifetimes(bool is_cuda)
{
  const auto open = [&](const kjit::context &c) { return is_cuda ? c.cuda() : c.cpu(); };
  float r[1] = {};
  kjit::kernel put = kjit::context().parse("lives.kir", text).kernel("put").block(1);
  put(r, 3.0f);
  EXPECT(r[0] == 3);
  EXPECT(kjit::context().parse("lives.kir", text).function("half").call<double>(3.0) == 1.5);
  kjit::array<float> a = kjit::to_device(open(kjit::context()), std::vector<float>(4, 2.0f));
  kjit::array<float> b = kjit::array<float>(a).reshape({ 2, 2 });
  a = kjit::array<float>();
  EXPECT(b.to_vector() == std::vector<float>(4, 2.0f));
  kjit::stream stream = open(kjit::context()).create_stream();
  stream.synchronize();
}

int main(int argc, char **argv)
{
  bool is_cuda = argc > 1 && !std::strcmp(argv[1], "cuda");
  std::unique_ptr<kjit::kernel> late;
  kjit::array<float> later;
  {
    kjit::context context;
    kjit::device device = is_cuda ? context.cuda() : context.cpu();
    kjit::module module = context.parse("cplusplus.kir", text);
    check_arguments(module, device);
    check_launches(context, module, device);
    check_failures(context, module, device);
    check_funcs(module);
    check_empty(context, device);
    check_lifetimes(is_cuda);
    late = std::make_unique<kjit::kernel>(module.kernel("axpy").on(device));
    later = kjit::to_device(device, std::vector<float>(10));
  }
  std::vector<float> r(10), x(10, 1.5f);
  (*late)(r, 2.0f, x, x);
  EXPECT(r[9] == 4.5f && later.to_vector() == std::vector<float>(10));
  late.reset();
  std::printf("%s\n", failures ? "wrong" : "right");
  return failures != 0;
}

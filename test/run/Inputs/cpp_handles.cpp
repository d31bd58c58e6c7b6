/* Handles of kjit.hpp on the device that the argument names: moves, empty handles, const arguments
 * of prepared launches, lists in variables, exceptions in callbacks, and threads. cpp_second.cpp is
 * a second translation unit of the same program. */
#include <kjit/kjit.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <thread>

kjit::array<int> doubled(const kjit::array<int> &x);

static std::atomic<int> failures{ 0 };
#define EXPECT(condition) \
  do { \
    if (!(condition)) std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), failures++; \
  } while (0)

template <typename F>
static void expect_error(int line, kjit_status status, const char *says, F call)
{
  try {
    call();
  } catch (const kjit::error &error) {
    if (error.status() == status && std::strstr(error.what(), says)) return;
    std::fprintf(stderr, "line %d: %s\nnot said: %s\n", line, error.what(), says);
    failures++;
    return;
  }
  std::fprintf(stderr, "line %d: nothing thrown; not said: %s\n", line, says);
  failures++;
}
#define REJECTED(status, says, ...) expect_error(__LINE__, status, says, [&] { __VA_ARGS__; })

static const char text[] = "kernel grow(x) { for i in grid_range(len(x)) { x[i] += 1 } }\n"
                           "kernel copy(r, x) { for i in grid_range(len(r)) { r[i] = x[i] } }\n"
                           "func add_both(x, y) { return x + y }\n";

/* Moves a handle to itself and away, and uses it empty and full. */
template <typename H, typename F> static void check_handle(int line, H handle, F use)
{
  H moved = handle;
  H &alias = moved;
  moved = std::move(alias);
  if (moved.get() != handle.get())
    std::fprintf(stderr, "line %d: a move to itself\n", line), failures++;
  H taken = std::move(moved);
  if (moved.get() || taken.get() != handle.get())
    std::fprintf(stderr, "line %d: a move\n", line), failures++;
  expect_error(line, KJIT_ERROR_MISUSE, "empty", [&] { use(moved); });
  std::swap(moved, taken);
  use(moved);
}
#define HANDLE(value, call) check_handle(__LINE__, value, [&](auto &h) { (void)(call); })

static void check_moves(const kjit::context &context, const kjit::device &device,
                        const kjit::module &module)
{
  std::vector<int> x{ 1, 2, 3 };
  const kjit::array<int> a = kjit::to_device(device, x);
  const kjit::stream stream = device.create_stream();
  const kjit::event event = device.create_event();
  event.record(stream);
  const kjit::kernel grow = module.kernel("grow").on(device);
  const kjit::graph graph = stream.capture([&] { grow.on(stream)(a); });
  kjit::plan plan;
  const kjit::any_array sum = kjit::reduce(a, kjit::add, kjit::options().prepare(plan));

  HANDLE(context, h.parse("again", text));
  HANDLE(context, h.expression("a", { "a" }));
  HANDLE(context, h.build("built"));
  HANDLE(device, h.create_stream());
  HANDLE(device, grow.on(h));
  HANDLE(device, kjit::options().on(h));
  HANDLE(device, kjit::array<int>(h, 3));
  HANDLE(module, h.kernel("grow"));
  HANDLE(module, h.text());
  HANDLE(grow, h(x));
  HANDLE(grow, h.prepare(x));
  HANDLE(grow, h.specialize("i32[:] C"));
  HANDLE(module.function("add_both"), h.template call<int>(1, 2));
  HANDLE(module.function("add_both"), kjit::reduce(a, h));
  HANDLE(a, h.to_vector());
  HANDLE(a, h.reshape({ 3, 1 }));
  HANDLE(a, kjit::map("a + b", { a, h }));
  HANDLE(sum, h.template to_vector<std::int64_t>());
  HANDLE(stream, h.synchronize());
  HANDLE(stream, h.wait(event));
  HANDLE(event, h.synchronize());
  HANDLE(graph, h.instantiate());
  HANDLE(graph.instantiate(), h.launch());
  HANDLE(grow.prepare(a), h.run());
  HANDLE(plan, h.run());
  HANDLE(kjit::formula(context, "a + 1", { kjit::column<int>("a") }), h.info());
  HANDLE(kjit::formula(context, "a + 1", { kjit::column<int>("a") }), h.uses(0));
  device.synchronize();
}

/* A call that rejects an empty argument reports the argument, not the failure of an earlier call.
 */
static void check_messages(const kjit::context &context, const kjit::device &device)
{
  const kjit::event event = device.create_event();
  const kjit::stream stream = device.create_stream();
  event.record(stream);
  REJECTED(KJIT_ERROR_SYNTAX, "earlier", context.parse("earlier", "kernel k("));
  REJECTED(KJIT_ERROR_MISUSE, "first is NULL", event.since(kjit::event()));
  REJECTED(KJIT_ERROR_MISUSE, "last is NULL",
           kjit::check(context.get(), kjit_get_elapsed_time(event.get(), nullptr, nullptr)));
  REJECTED(KJIT_ERROR_SYNTAX, "earlier", context.parse("earlier", "kernel k("));
  REJECTED(KJIT_ERROR_MISUSE, "event is NULL", stream.wait(kjit::event()));
  REJECTED(KJIT_ERROR_SYNTAX, "earlier", context.parse("earlier", "kernel k("));
  int can = 0;
  REJECTED(KJIT_ERROR_MISUSE, "peer is NULL",
           context.check(kjit_can_access_peer(device.get(), nullptr, &can)));
  REJECTED(KJIT_ERROR_MISUSE, "kjit_enable_peer_access: peer is NULL",
           context.check(kjit_enable_peer_access(device.get(), nullptr)));

  kjit_config config = kjit::context::config();
  config.trust = static_cast<kjit_trust>(3);
  REJECTED(KJIT_ERROR_MISUSE, "trust 3 is not a value", kjit::context{ config });
  REJECTED(KJIT_ERROR_MISUSE, "config.size_bytes is 0", kjit::context{ kjit_config() });
  kjit_config small = kjit::context::config(), large = small;
  small.size_bytes = 4;
  large.size_bytes = 1 << 20;
  REJECTED(KJIT_ERROR_MISUSE, "config.size_bytes is 4;", kjit::context{ small });
  REJECTED(KJIT_ERROR_MISUSE, "config.size_bytes is 1048576;", kjit::context{ large });
}

static void check_constness(const kjit::device &device, const kjit::module &module)
{
  const kjit::kernel copy = module.kernel("copy").on(device);
  std::vector<int> r(4), x{ 1, 2, 3, 4 };
  const std::vector<int> fixed(4), other{ 5, 6, 7, 8 };
  REJECTED(KJIT_ERROR_ARGUMENT, "writes parameter `r`", copy.prepare(fixed, x));
  const kjit::prepared prepared = copy.prepare(r, x);
  REJECTED(KJIT_ERROR_ARGUMENT, "writes parameter `r`", prepared.set(0, fixed));
  prepared.set(1, other);
  prepared.run();
  device.synchronize();
  EXPECT(r == other && fixed == std::vector<int>(4));
}

/* Operands and lists that a program keeps in variables. */
static void check_lists(const kjit::device &device)
{
  const std::vector<int> x{ 4, 8, 6 };
  const kjit::array<int> a = kjit::to_device(device, x);
  const kjit::operand one(a);
  EXPECT(kjit::reduce(one, kjit::max).value<int>() == 8);
  const kjit::operand same(a);
  const kjit::operands list{ a, same, x, 2 };
  const kjit::any_array sum = kjit::map("a + b + c * d", list);
  EXPECT(sum.to_vector<int>() == (std::vector<int>{ 16, 32, 24 }));
  kjit::array<int> low(device, 3), high(device, 3);
  const kjit::targets both{ low, high };
  std::vector<kjit::operation> operators{ kjit::min, "a > b ? a : b" };
  kjit::reduce_several_into(both, a.reshape({ 1, 3 }), operators, kjit::options().axis(0));
  EXPECT(low.to_vector() == x && high.to_vector() == x);
  REJECTED(KJIT_ERROR_SYNTAX, "expected an expression", kjit::sort(a, ""));
}

static void check_builder(const kjit::context &context, const kjit::device &device)
{
  const kjit::builder b = context.build("one"), other = context.build("other");
  b.kernel("set", [&] {
    const kjit::expression r = b.parameter("r");
    other.kernel("set", [&] {
      const kjit::expression s = other.parameter("s");
      REJECTED(KJIT_ERROR_MISUSE, "another builder", other.assign(s(0), r(0)));
      REJECTED(KJIT_ERROR_MISUSE, "another builder", other.if_(r(0) > 1, [] {}));
    });
    b.attribute("block", { 1 });
    b.attribute("grid", { 1 });
    b.assign(r(), 7);
  });
  kjit::array<int> r(device, {});
  b.finish().kernel("set")(r);
  EXPECT(r.value() == 7);
  try {
    b.kernel("left", [] { throw 1; });
  } catch (int) {
  }
  REJECTED(KJIT_ERROR_MISUSE, "`left` is still open", b.finish());
}

/* Threads that share a kernel, a func, operators as text and a formula; contexts alternate. */
static void check_threads(bool is_cuda)
{
  const kjit::context contexts[2];
  const kjit::operation greater("a > b ? a : b", true);
  const kjit::callable by_digit("a % 10 < b % 10");
  const kjit::module module = contexts[0].parse("shared.kir", text);
  const kjit::formula formula(contexts[0], "p * q",
                              { kjit::column<int>("p"), kjit::column<int>("q") });
  const auto work = [&](int number) {
    const kjit::context &context = contexts[number % 2];
    const kjit::device device = is_cuda ? context.cuda() : context.cpu();
    for (int n = 0; n < 5; n++) {
      std::vector<int> x(100), expected;
      std::iota(x.begin(), x.end(), n * number);
      const kjit::array<int> a = kjit::to_device(device, x);
      EXPECT(kjit::reduce(a, greater).value<int>() == x.back());
      expected = x;
      std::stable_sort(expected.begin(), expected.end(),
                       [](int p, int q) { return p % 10 < q % 10; });
      EXPECT(kjit::sort(a, by_digit).to_vector<int>() == expected);
      EXPECT(formula.compute<int>({ x, x }).values[9] == x[9] * x[9]);
      EXPECT(module.function("add_both").call<int>(n, number) == n + number);
      module.kernel("grow")(x);
      EXPECT(x[0] == n * number + 1);
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; number++) threads.emplace_back(work, number);
  for (std::thread &each : threads) each.join();
}

int main(int argc, char **argv)
{
  const bool is_cuda = argc > 1 && !std::strcmp(argv[1], "cuda");
  {
    const kjit::context context;
    const kjit::device device = is_cuda ? context.cuda() : context.cpu();
    const kjit::module module = context.parse("handles.kir", text);
    check_moves(context, device, module);
    check_messages(context, device);
    check_constness(device, module);
    check_lists(device);
    check_builder(context, device);
    const kjit::array<int> a = kjit::to_device(device, std::vector<int>{ 3, 1, 2 });
    EXPECT(doubled(a).to_vector() == (std::vector<int>{ 2, 4, 6 }));
    REJECTED(KJIT_ERROR_MISUSE, "empty", doubled(kjit::array<int>()));
  }
  check_threads(is_cuda);
  std::printf("%s\n", failures ? "wrong" : "right");
  return failures != 0;
}

/* Objects of kjit.hpp: plans, temporary storage, events, graphs, prepared launches, the builder,
 * DLPack, lists of arguments, extents; and misuse, which throws; on the device that the argument
 * names. */
#include <kjit/kjit.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>

static int failures;
#define EXPECT(condition) \
  do { \
    if (!(condition)) std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), failures++; \
  } while (0)

static std::mt19937 engine(std::random_device{}());
static std::vector<std::int64_t> random_numbers(std::size_t count)
{
  std::uniform_int_distribution<std::int64_t> uniform(-1000, 1000);
  std::vector<std::int64_t> made(count);
  for (auto &each : made) each = uniform(engine);
  return made;
}
static std::int64_t sum(const std::vector<std::int64_t> &x)
{
  return std::accumulate(x.begin(), x.end(), std::int64_t(0));
}

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

static const char text[] =
  "kernel axpy(r, a, x) { for i in grid_range(len(r)) { r[i] += a * x[i] } }\n"
  "kernel failing(r) @block(1) @grid(1) { raise \"no\" }\n"
  "func fail(a, b) { if a != b { raise \"different\" }\n return a }\n"
  "func add_both(x: f64, y: f64) { return x + y }\n"
  "extern func inner(x)\n"
  "kernel linked(r) { for i in grid_range(len(r)) { r[i] = inner(r[i]) } }\n";

static void check_plans(const kjit::device &device)
{
  const auto x = random_numbers(1000);
  kjit::array<std::int64_t> a = kjit::to_device(device, x), total(device, {});
  kjit::plan plan;
  kjit::reduce_into(total, a, kjit::add, kjit::options().prepare(plan));
  EXPECT(plan.size() >= 1);
  plan.run();
  EXPECT(total.value() == sum(x));
  const auto y = random_numbers(1000);
  a.copy_from(y);
  const kjit::stream stream = device.create_stream();
  plan.run(stream);
  EXPECT(total.value(stream) == sum(y));
  /* the arrays of a plan live as long as the plan; created results as well */
  kjit::plan kept;
  const kjit::any_array sorted =
    kjit::sort(kjit::to_device(device, x), kjit::options().prepare(kept));
  kept.run();
  EXPECT(kjit::reduce(sorted, kjit::max).value<std::int64_t>() ==
         *std::max_element(x.begin(), x.end()));
  /* the application's temporary storage */
  std::uint64_t size_bytes = 0;
  kjit::sort_into(a, a, kjit::options().query_work(size_bytes));
  const kjit::array<std::uint8_t> work(device, { size_bytes });
  kjit::sort_into(a, a, kjit::options().work(work));
  const auto found = a.to_vector();
  EXPECT(std::is_sorted(found.begin(), found.end()));
  /* a stream alone tells the device */
  const kjit::any_array r = kjit::reduce(x, "add", kjit::options().on(stream));
  EXPECT(r.value<std::int64_t>(stream) == sum(x));
}

static void check_events(const kjit::device &device, const kjit::module &module)
{
  const auto x = random_numbers(500);
  const kjit::array<std::int64_t> a = kjit::to_device(device, x);
  kjit::array<std::int64_t> r = kjit::to_device(device, std::vector<std::int64_t>(500));
  const kjit::stream first = device.create_stream(), second = device.create_stream();
  const kjit::event begin = device.create_event(), end = device.create_event();
  const kjit::kernel axpy = module.kernel("axpy");
  begin.record(first);
  axpy.on(first)(r, std::int64_t(2), a);
  end.record(first);
  second.wait(end);
  axpy.on(second)(r, std::int64_t(1), a);
  second.synchronize();
  end.synchronize();
  EXPECT(end.is_done() && second.is_done() && end.since(begin).count() >= 0);
  EXPECT(kjit::reduce(r, kjit::add).value<std::int64_t>() == 3 * sum(x));
  /* the same work as a graph, with a plan in it */
  kjit::array<std::int64_t> total(device, {});
  kjit::plan plan;
  kjit::reduce_into(total, r, kjit::add, kjit::options().prepare(plan));
  plan.run(first); /* clears the temporary storage, which a capture cannot do */
  first.synchronize();
  const kjit::graph graph = first.capture([&] {
    axpy.on(first)(r, std::int64_t(1), a);
    plan.run(first);
  });
  EXPECT(graph.size() >= 2);
  const kjit::executable_graph ready = graph.instantiate();
  ready.launch(first);
  ready.launch(first);
  EXPECT(total.value(first) == 5 * sum(x));
  /* an exception ends the capture */
  EXPECT(status_of([&] { first.capture([&] { kjit::check(nullptr, KJIT_ERROR_IO); }); }, "") ==
         KJIT_ERROR_IO);
  EXPECT(!kjit_is_capturing(first.get()));
}

static void check_launches(const kjit::device &device, const kjit::context &context,
                           const kjit::module &module)
{
  const auto x = random_numbers(100);
  const kjit::array<std::int64_t> a = kjit::to_device(device, x);
  kjit::array<std::int64_t> r = kjit::to_device(device, std::vector<std::int64_t>(100));
  const kjit::kernel axpy = module.kernel("axpy").on(device);
  const kjit::prepared ready = axpy.prepare(r, std::int64_t(1), a);
  ready.run();
  ready.set(1, std::int64_t(4));
  ready.run();
  EXPECT(kjit::reduce(r, kjit::add).value<std::int64_t>() == 5 * sum(x));
  kjit::arguments list;
  /* the list keeps the array alive */
  list.add(r).add(std::int64_t(-5)).add(kjit::to_device(device, x));
  axpy.launch(list);
  EXPECT(r.to_vector() == std::vector<std::int64_t>(100) && list.size() == 3);
  kjit::arguments numbers;
  numbers.add(1.5).add(2.0);
  EXPECT(module.function("add_both").call_list<double>(numbers) == 3.5);
  const kjit::specialization made = axpy.specialize("f32[:] C, f32, const f32[:] C");
  EXPECT(std::strstr(made.info().signature, "f32[:] C, f32"));
  const kjit::module library = context.parse("inner.kir", "func inner(x) { return 7 * x }\n");
  kjit::array<std::int64_t> s = kjit::to_device(device, x);
  module.link(library).kernel("linked").on(device)(s);
  EXPECT(kjit::reduce(s, kjit::add).value<std::int64_t>() == 7 * sum(x));
  /* a text is parsed and compiled once */
  const kjit::operation text_operator("a + b");
  const kjit::any_array once = kjit::reduce(a, text_operator);
  const std::uint64_t compiled = context.statistics().compilations;
  for (int i = 0; i < 3; i++)
    EXPECT(kjit::reduce(a, text_operator).value<std::int64_t>() == sum(x));
  EXPECT(context.statistics().compilations == compiled);
}

static void check_builder(const kjit::device &device, const kjit::context &context)
{
  kjit::builder b = context.build("built.kir");
  b.function("twice", [&] {
    const kjit::expression x = b.parameter("x");
    b.return_(x * 2);
  });
  b.kernel("fill", [&] {
    const kjit::expression r = b.parameter("r"), n = b.parameter("n");
    b.grid_range(b.call("len", r), [&](const kjit::expression &i) {
      const kjit::expression s = b.var("s", 0, KJIT_I64);
      b.range("k", n, [&](const kjit::expression &k) { b.assign(s, k, KJIT_OP_ADD); });
      b.if_else(
        i % 2 == 0 && i > 1, [&] { b.assign(r[i], b.call("twice", s)); },
        [&] { b.assign(r[i], -s + 1); });
    });
  });
  const kjit::module module = b.finish();
  kjit::array<std::int64_t> r(device, { 5 });
  module.kernel("fill")(r, 4);
  EXPECT(r.to_vector() == (std::vector<std::int64_t>{ -5, -5, 12, -5, 12 }));
  EXPECT(status_of(
           [&] {
             b.kernel("bad", [&] { b.evaluate(b.call("missing")); });
             (void)b.finish();
           },
           "") != KJIT_OK);
}

static void check_dlpack(const kjit::device &device, const kjit::context &context)
{
  const auto x = random_numbers(60);
  kjit::any_array other;
  {
    const kjit::array<std::int64_t> a = kjit::to_device(device, x).reshape({ 6, 10 });
    other = context.take_dlpack(a.to_dlpack());
  }
  EXPECT(other.shape() == (std::vector<std::int64_t>{ 6, 10 }) && other.element() == KJIT_I64);
  EXPECT(other.to_vector<std::int64_t>() == x);
  kjit_managed_tensor *unused = other.to_dlpack();
  unused->deleter(unused);
}

static void check_extents(const kjit::device &device)
{
  const std::size_t rows = 3;
  const std::uint8_t columns = 4;
  const kjit::array<float> a(device, { rows, columns, 2 });
  EXPECT(a.shape() == (std::vector<std::int64_t>{ 3, 4, 2 }));
  const std::vector<unsigned> shape{ 12, 2 };
  EXPECT(a.reshape(shape).shape() == (std::vector<std::int64_t>{ 12, 2 }));
  EXPECT(kjit::array<float>(device, {}).size() == 1);
  std::vector<float> m(12);
  const kjit::view<float, 2> view(m.data(), { rows, columns }, { columns, 1 });
  EXPECT(view.shape[0] == 3 && view.strides[0] == 4);
  EXPECT(status_of([&] { kjit::array<float>(device, { ~std::uint64_t(0) }); }, "must fit in an i64") ==
         KJIT_ERROR_ARGUMENT);
}

static void check_formulas(const kjit::context &context)
{
  const std::size_t n = 700;
  std::vector<double> price(n);
  std::vector<std::int32_t> count(n);
  std::vector<std::uint8_t> flags(n), bitmap((n + 7) / 8);
  for (std::size_t i = 0; i < n; i++) {
    price[i] = double(engine() % 1000) / 8, count[i] = std::int32_t(engine() % 9);
    flags[i] = engine() % 2,
    bitmap[i / 8] = std::uint8_t(bitmap[i / 8] | (engine() % 2) << (i % 8));
  }
  const auto has = [&](std::size_t i) { return ((bitmap[i / 8] >> (i % 8)) & 1) != 0; };
  const std::vector<kjit::formula_column> columns{ kjit::nullable_column<double>("price"),
                                                   kjit::column<std::int32_t>("count"),
                                                   kjit::column<bool>("is large") };
  const kjit::formula formula(context, "where(`is large`, price * count, -1)", columns);
  const auto result = formula.compute<double>({ { price, &bitmap }, count, flags });
  for (std::size_t i = 0; i < n; i++) {
    EXPECT(result.is_valid(i) == (!flags[i] || has(i)));
    if (result.is_valid(i))
      EXPECT(result.values[i] == (flags[i] ? price[i] * double(count[i]) : -1));
  }
  const kjit::formula other(context, "count > 4", columns);
  const std::vector<kjit::formula_column> with_texts{
    { "count", KJIT_I32, KJIT_COLUMN_TEXT, { "a", "b", "c" } }
  };
  const auto is_b =
    kjit::formula(context, "count in ('b', 'c')", with_texts).compute<std::uint8_t>({ count });
  for (std::size_t i = 0; i < n; i++) EXPECT(is_b.values[i] == (count[i] == 1 || count[i] == 2));
  const kjit::formula texts(context, "where(count > 'a', 'later', count)", with_texts);
  const auto later = texts.compute<std::int32_t>({ count });
  EXPECT((texts.info().flags & KJIT_COLUMN_TEXT) != 0 && other.texts().empty());
  for (std::size_t i = 0; i < n; i++)
    if (count[i] >= 0 && count[i] < 3)
      EXPECT(texts.texts().at(std::size_t(later.values[i])) == (count[i] ? "later" : "a"));
  EXPECT(other.info().type == KJIT_BOOL && other.uses(1) && !other.uses(0));
  const auto large = other.compute<std::uint8_t>({ kjit::none, count, kjit::none });
  for (std::size_t i = 0; i < n; i++) EXPECT(large.values[i] == (count[i] > 4));
  /* misuse */
  const std::vector<float> narrow(n);
  const std::vector<std::int32_t> few(n - 1);
  EXPECT(status_of([&] { kjit::formula(context, "count +", columns); }, "formula:1:") ==
         KJIT_ERROR_SYNTAX);
  EXPECT(status_of([&] { kjit::formula(context, "cuont", columns); }, "did you mean `count`") ==
         KJIT_ERROR_NAME);
  EXPECT(status_of(
           [&] {
             formula.compute<float>({ { price, &bitmap }, count, flags });
           },
           "computes f64, not f32") == KJIT_ERROR_TYPE);
  EXPECT(status_of(
           [&] {
             formula.compute<double>({ narrow, count, flags });
           },
           "`price`") == KJIT_ERROR_TYPE);
  EXPECT(status_of(
           [&] {
             formula.compute<double>({ { price, &bitmap }, few, flags });
           },
           "`count` has 699 rows") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of(
           [&] {
             formula.compute<double>({ price, count });
           },
           "3 columns, and 2") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of(
           [&] {
             formula.compute<double>({ price, kjit::none, flags });
           },
           "uses column `count`") == KJIT_ERROR_ARGUMENT);
  const std::vector<std::uint8_t> short_bitmap(3);
  EXPECT(status_of(
           [&] {
             formula.compute<double>({ { price, &short_bitmap }, count, flags });
           },
           "fewer elements or bits") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { (void)kjit::formula().info(); }, "") == KJIT_ERROR_MISUSE);
}

static void check_misuse(const kjit::device &device, const kjit::context &context,
                         const kjit::module &module)
{
  const std::vector<float> x(10, 1);
  const kjit::array<float> a = kjit::to_device(device, x);
  kjit::array<double> wide(device, { 10 });
  EXPECT(status_of([&] { kjit::reduce(x, kjit::add); }, "no argument belongs to a context") ==
         KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { (void)kjit::reduce(a, kjit::add).value<double>(); },
                   "the elements are f32, not f64") == KJIT_ERROR_TYPE);
  EXPECT(status_of([&] { kjit::array<int> r = kjit::sort(a); }, "f32, not i32") == KJIT_ERROR_TYPE);
  EXPECT(status_of([&] { (void)kjit::sort(a).value<float>(); }, "bytes") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { kjit::reduce_into(wide, a, kjit::add); }, "result") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { kjit::reduce_into(x, a, kjit::add); }, "must not be const") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { kjit::reduce(a, "addd"); }, "addd") == KJIT_ERROR_NAME);
  EXPECT(status_of([&] { kjit::reduce(a, "a +"); }, "expression:1:") == KJIT_ERROR_SYNTAX);
  EXPECT(status_of([&] { kjit::reduce(a, "a + c"); }, "`c`") == KJIT_ERROR_NAME);
  EXPECT(status_of([&] { kjit::scan(a, kjit::add, kjit::options().descending()); }, "") != KJIT_OK);
  EXPECT(status_of([&] { kjit::reduce(a, kjit::add, kjit::options().axis(3)); }, "ax") ==
         KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { kjit::top_k(a, 11); }, "k") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { kjit::select(a, wide.slice(0, 3)); }, "") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of([&] { kjit::matmul(a, wide); }, "") == KJIT_ERROR_TYPE);
  EXPECT(status_of([&] { kjit::einsum("ij->", { a }); }, "") == KJIT_ERROR_ARGUMENT);
  EXPECT(status_of(
           [&] {
             kjit::map("a", { a, kjit::none });
           },
           "kjit::none") == KJIT_ERROR_ARGUMENT);
  /* handles that were moved from, and empty ones */
  kjit::array<float> moved = kjit::to_device(device, x), taken = std::move(moved);
  EXPECT(status_of([&] { kjit::sort(moved); }, "empty") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { kjit::sort_into(moved, taken); }, "") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { kjit::plan().run(); }, "") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { kjit::event().record(); }, "") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { (void)kjit::graph().instantiate(); }, "") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { kjit::executable_graph().launch(); }, "") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { kjit::prepared().run(); }, "") == KJIT_ERROR_MISUSE);
  EXPECT(status_of([&] { (void)kjit::any_array().to_vector<int>(); }, "") == KJIT_ERROR_MISUSE);
  kjit::function func = module.function("fail"), other = std::move(func);
  EXPECT(status_of([&] { kjit::reduce(a, func); }, "empty") == KJIT_ERROR_MISUSE);
  /* a device that fails in the call, or at the next one that waits */
  const kjit::array<int> different = kjit::to_device(device, std::vector<int>{ 1, 2, 3 });
  EXPECT(status_of(
           [&] {
             kjit::reduce(different, other);
             device.synchronize();
           },
           "different") == KJIT_ERROR_KERNEL);
  EXPECT(kjit::reduce(a, kjit::add).value<float>() == 10);
  /* another context */
  const kjit::context second;
  const kjit::array<float> foreign = kjit::to_device(second.cpu(), x);
  EXPECT(status_of([&] { kjit::matmul(a, foreign); }, "context") == KJIT_ERROR_ARGUMENT);
  (void)context;
}

/* Results keep only their context alive. */
static void check_lifetimes(bool is_cuda)
{
  kjit::any_array sorted;
  kjit::plan plan;
  {
    const kjit::context context;
    const kjit::device device = is_cuda ? context.cuda() : context.cpu();
    const kjit::array<int> a = kjit::to_device(device, std::vector<int>{ 3, 1, 2 });
    sorted = kjit::sort(a, "a > b");
    const kjit::any_array again = kjit::sort(a, kjit::options().prepare(plan));
  }
  EXPECT(sorted.to_vector<int>() == (std::vector<int>{ 3, 2, 1 }));
  plan.run();
}

int main(int argc, char **argv)
{
  const bool is_cuda = argc > 1 && !std::strcmp(argv[1], "cuda");
  {
    const kjit::context context;
    const kjit::device device = is_cuda ? context.cuda() : context.cpu();
    const kjit::module module = context.parse("objects.kir", text);
    check_plans(device);
    check_events(device, module);
    check_launches(device, context, module);
    check_builder(device, context);
    check_dlpack(device, context);
    check_extents(device);
    check_formulas(context);
    check_misuse(device, context, module);
  }
  check_lifetimes(is_cuda);
  std::printf("%s\n", failures ? "wrong" : "right");
  return failures != 0;
}

/* Every algorithm of kjit.hpp against the C++ standard library, on fresh random data; on the device
 * that the argument names. */
#include <kjit/kjit.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

static int failures;
#define EXPECT(condition) \
  do { \
    if (!(condition)) std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition), failures++; \
  } while (0)

using ints = std::vector<std::int32_t>;
using longs = std::vector<std::int64_t>;
using doubles = std::vector<double>;

static std::mt19937 engine(std::random_device{}());
static std::int32_t below(std::int32_t limit)
{
  return std::uniform_int_distribution<std::int32_t>(0, limit - 1)(engine);
}
static ints random_ints(std::size_t count, std::int32_t limit)
{
  ints made(count);
  for (auto &each : made) each = below(limit) - limit / 4;
  return made;
}
static doubles random_doubles(std::size_t count)
{
  std::uniform_real_distribution<double> uniform(-1, 1);
  doubles made(count);
  for (auto &each : made) each = uniform(engine);
  return made;
}
template <typename T> static std::vector<T> first(std::vector<T> all, std::size_t count)
{
  all.resize(count);
  return all;
}
static bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(b)); }
static bool close(const doubles &a, const doubles &b)
{
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return close(x, y); });
}

struct setting {
  kjit::context context;
  kjit::device device;
  kjit::module module;
  template <typename T> kjit::array<T> put(const std::vector<T> &x) const
  {
    return kjit::to_device(device, x);
  }
};

static const char text[] = "func smaller(a, b) { return a < b }\n"
                           "func far(a, b) { return a > b }\n"
                           "func longest(a, b) @commutes { return max(a, b) }\n"
                           "func same(a, b) { return a // 4 == b // 4 }\n"
                           "func square(i, x) { return x[i] * x[i] }\n"
                           "func twice(i, v, r) { r[i] = 2 * v }\n"
                           "func distance(x, y, i, j) { return (x - y) * (x - y) }\n"
                           "func both(a, b) { return (a + b, a - b) }\n"
                           "func shifted(s, bias) { return s + bias }\n";

static void check_reductions(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  const ints x = random_ints(n, 100);
  const doubles y = random_doubles(n);
  const kjit::array<std::int32_t> a = s.put(x);
  const kjit::array<double> b = s.put(y);
  const std::int64_t total = std::accumulate(x.begin(), x.end(), std::int64_t(0));
  EXPECT(kjit::reduce(a, kjit::add).value<std::int64_t>() == total);
  EXPECT(kjit::reduce(a, "add").value<std::int64_t>() == total);
  EXPECT(
    kjit::reduce(a, kjit::add, kjit::options().initial(std::int64_t(7))).value<std::int64_t>() ==
    total + 7);
  EXPECT(kjit::reduce(b, kjit::min).value<double>() == *std::min_element(y.begin(), y.end()));
  EXPECT(kjit::reduce(b, s.module.function("longest")).value<double>() ==
         *std::max_element(y.begin(), y.end()));
  EXPECT(kjit::reduce(b, "a > b ? a : b").value<double>() == *std::max_element(y.begin(), y.end()));
  EXPECT(kjit::reduce(b, kjit::argmin).value<std::int64_t>() ==
         std::min_element(y.begin(), y.end()) - y.begin());
  EXPECT(close(kjit::reduce(a, kjit::mean).value<double>(), double(total) / double(n)));
  const kjit::operation keep("a * b"); /* parsed once */
  EXPECT(close(kjit::reduce(b, keep).value<double>(),
               std::accumulate(y.begin(), y.end(), 1.0, std::multiplies<>())));
  /* a host container as operand, and as result */
  double largest = 0;
  kjit::view<double, 1> into(&largest, { 1 });
  kjit::reduce_into(into, y, kjit::max, kjit::options().on(s.device));
  EXPECT(largest == *std::max_element(y.begin(), y.end()));
  const kjit::created several = kjit::reduce_several(a, { kjit::min, kjit::max, kjit::add });
  EXPECT(several.size() == 3);
  EXPECT(several[0].value<std::int32_t>() == *std::min_element(x.begin(), x.end()) &&
         several[1].value<std::int32_t>() == *std::max_element(x.begin(), x.end()) &&
         several[2].value<std::int64_t>() == total);
  const kjit::any_array squares =
    kjit::reduce(kjit::computed(s.module.function("square"), { n }, a), kjit::add);
  EXPECT(squares.value<std::int64_t>() ==
         std::inner_product(x.begin(), x.end(), x.begin(), std::int64_t(0)));
  /* rows of a matrix */
  const std::size_t rows = 1 + std::size_t(below(20)), columns = 1 + std::size_t(below(30));
  const ints m = random_ints(rows * columns, 50);
  const longs sums =
    kjit::reduce(s.put(m).reshape({ rows, columns }), kjit::add, kjit::options().axis(1))
      .to_vector<std::int64_t>();
  EXPECT(sums.size() == rows);
  for (std::size_t i = 0; i < sums.size(); i++)
    EXPECT(sums[i] == std::accumulate(m.begin() + std::ptrdiff_t(i * columns),
                                      m.begin() + std::ptrdiff_t((i + 1) * columns),
                                      std::int64_t(0)));
}

static void check_scans(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  const ints x = random_ints(n, 100);
  const kjit::array<std::int32_t> a = s.put(x);
  longs expected(n);
  std::partial_sum(x.begin(), x.end(), expected.begin(), std::plus<std::int64_t>());
  longs wide(x.begin(), x.end());
  std::partial_sum(wide.begin(), wide.end(), expected.begin());
  EXPECT(kjit::scan(a, kjit::add).to_vector<std::int64_t>() == expected);
  std::exclusive_scan(wide.begin(), wide.end(), expected.begin(), std::int64_t(3));
  EXPECT(kjit::scan(a, kjit::add, kjit::options().exclusive().initial(std::int64_t(3)))
           .to_vector<std::int64_t>() == expected);
  ints highest(n);
  std::inclusive_scan(x.begin(), x.end(), highest.begin(),
                      [](std::int32_t p, std::int32_t q) { return std::max(p, q); });
  kjit::array<std::int32_t> place = s.put(x);
  kjit::scan_into(place, place, kjit::max);
  EXPECT(place.to_vector() == highest);
  longs first(n);
  for (std::size_t i = 1; i < n; i++)
    first[i] = highest[i] == highest[i - 1] ? first[i - 1] : std::int64_t(i);
  const auto [best, index] = kjit::scan_with_index(a, kjit::max);
  EXPECT(best.to_vector<std::int32_t>() == highest && index.to_vector<std::int64_t>() == first);
}

/* Segments with random bounds. */
static longs random_offsets(std::size_t n)
{
  longs offsets{ 0, std::int64_t(n) };
  for (int i = 0; i < 20; i++) offsets.push_back(below(std::int32_t(n)));
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}

static void check_segments(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  const ints x = random_ints(n, 100);
  const longs offsets = random_offsets(n);
  const auto a = s.put(x);
  const auto o = s.put(offsets);
  longs sums, scans(n);
  ints sorted = x;
  for (std::size_t i = 0; i + 1 < offsets.size(); i++) {
    const auto from = x.begin() + offsets[i], to = x.begin() + offsets[i + 1];
    sums.push_back(std::accumulate(from, to, std::int64_t(0)));
    std::int64_t running = 0;
    for (auto k = offsets[i]; k < offsets[i + 1]; k++)
      scans[std::size_t(k)] = running += x[std::size_t(k)];
    std::sort(sorted.begin() + offsets[i], sorted.begin() + offsets[i + 1]);
  }
  EXPECT(kjit::reduce_segments(a, o, kjit::add).to_vector<std::int64_t>() == sums);
  EXPECT(kjit::scan_segments(a, o, kjit::add).to_vector<std::int64_t>() == scans);
  const auto [result, values] = kjit::sort_segments(a, kjit::none, o);
  EXPECT(result.to_vector<std::int32_t>() == sorted && !values.get());
  longs order(n);
  std::iota(order.begin(), order.end(), 0);
  const auto moved = kjit::sort_segments(a, s.put(order), o);
  const longs places = moved[1].to_vector<std::int64_t>();
  for (std::size_t i = 0; i < n; i++) EXPECT(x[std::size_t(places[i])] == sorted[i]);
}

static void check_keys(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  ints keys = random_ints(n, 40);
  const ints x = random_ints(n, 100);
  std::sort(keys.begin(), keys.end());
  std::map<std::int32_t, std::int64_t> sums;
  longs scans(n);
  for (std::size_t i = 0; i < n; i++) scans[i] = sums[keys[i]] += x[i];
  const auto [found, totals, count] = kjit::reduce_by_key(s.put(keys), s.put(x), kjit::add);
  const std::int64_t runs = count.value<std::int64_t>();
  EXPECT(runs == std::int64_t(sums.size()));
  const ints heads = found.slice(0, runs).to_vector<std::int32_t>();
  const longs values = totals.slice(0, runs).to_vector<std::int64_t>();
  std::size_t at = 0;
  for (const auto &[key, sum] : sums) {
    EXPECT(heads[at] == key && values[at] == sum);
    at++;
  }
  EXPECT(kjit::scan_by_key(s.put(keys), s.put(x), kjit::add).to_vector<std::int64_t>() == scans);
  const auto grouped = kjit::reduce_by_key(s.put(keys), s.put(x), kjit::add, "a == b");
  EXPECT(grouped[2].value<std::int64_t>() == runs);
}

static void check_sorts(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  const ints x = random_ints(n, 500);
  const auto a = s.put(x);
  ints up = x, down = x, digits = x;
  std::sort(up.begin(), up.end());
  std::sort(down.begin(), down.end(), std::greater<>());
  std::stable_sort(digits.begin(), digits.end(),
                   [](std::int32_t p, std::int32_t q) { return (p & 7) < (q & 7); });
  EXPECT(kjit::sort(a).to_vector<std::int32_t>() == up);
  EXPECT(kjit::sort(a, kjit::options().descending()).to_vector<std::int32_t>() == down);
  EXPECT(kjit::sort(a, "(a & 7) < (b & 7)").to_vector<std::int32_t>() == digits);
  EXPECT(kjit::sort(a, s.module.function("far")).to_vector<std::int32_t>() == down);
  ints host = x;
  kjit::sort_into(host, host, kjit::options().on(s.device));
  EXPECT(host == up);
  longs order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t p, std::int64_t q) {
    return x[std::size_t(p)] < x[std::size_t(q)];
  });
  EXPECT(kjit::argsort(a).to_vector<std::int64_t>() == order);
  longs numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto [keys, values] = kjit::sort_pairs(a, s.put(numbers));
  EXPECT(keys.to_vector<std::int32_t>() == up && values.to_vector<std::int64_t>() == order);
  const std::size_t half = n / 2, k = 1 + std::size_t(below(std::int32_t(n)));
  ints left(x.begin(), x.begin() + std::ptrdiff_t(half)),
    right(x.begin() + std::ptrdiff_t(half), x.end());
  std::sort(left.begin(), left.end()), std::sort(right.begin(), right.end());
  EXPECT(kjit::merge(s.put(left), s.put(right)).to_vector<std::int32_t>() == up);
  const auto [smallest, places] = kjit::top_k(a, std::int64_t(k));
  EXPECT(smallest.to_vector<std::int32_t>() == first(up, k));
  EXPECT(places.to_vector<std::int64_t>() == first(order, k));
  ints wanted = random_ints(50, 600);
  longs lower, upper;
  for (const auto v : wanted) {
    lower.push_back(std::lower_bound(up.begin(), up.end(), v) - up.begin());
    upper.push_back(std::upper_bound(up.begin(), up.end(), v) - up.begin());
  }
  EXPECT(kjit::search_sorted(s.put(up), s.put(wanted)).to_vector<std::int64_t>() == lower);
  EXPECT(kjit::search_sorted(s.put(up), s.put(wanted), kjit::options().right())
           .to_vector<std::int64_t>() == upper);
}

template <typename T>
static bool holds(const kjit::any_array &result, const kjit::any_array &count,
                  const std::vector<T> &expected)
{
  const std::int64_t found = count.value<std::int64_t>();
  return found == std::int64_t(expected.size()) &&
         result.slice(0, found).to_vector<T>() == expected;
}

static void check_selections(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  const ints x = random_ints(n, 12);
  const auto a = s.put(x);
  ints flags(n), classes(n), kept, rest;
  std::array<ints, 3> classed;
  longs places, starts, lengths;
  for (std::size_t i = 0; i < n; i++) {
    flags[i] = below(2), classes[i] = below(3);
    (flags[i] ? kept : rest).push_back(x[i]);
    classed[std::size_t(classes[i])].push_back(x[i]);
    if (x[i]) places.push_back(std::int64_t(i));
  }
  const auto [result, count] = kjit::select(a, s.put(flags));
  EXPECT(holds(result, count, kept));
  const auto [yes, no, number] = kjit::partition(a, s.put(flags));
  EXPECT(holds(yes, number, kept));
  EXPECT(no.slice(0, std::int64_t(rest.size())).to_vector<std::int32_t>() == rest);
  const auto three = kjit::partition_three(a, s.put(classes));
  for (std::size_t k = 0; k < 3; k++)
    EXPECT(three[k].slice(0, std::int64_t(classed[k].size())).to_vector<std::int32_t>() ==
           classed[k]);
  const auto [at, nonzeros] = kjit::nonzero(a);
  EXPECT(holds(at, nonzeros, places));
  ints unique = x;
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  for (std::size_t i = 0; i < n; i++)
    if (!i || x[i] != x[i - 1]) starts.push_back(std::int64_t(i)), lengths.push_back(1);
    else lengths.back()++;
  const auto [heads, runs] = kjit::unique(a);
  EXPECT(holds(heads, runs, unique));
  longs numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto pairs = kjit::unique_pairs(a, s.put(numbers));
  EXPECT(holds(pairs[0], pairs[2], unique) && holds(pairs[1], pairs[2], starts));
  const auto lengthy = kjit::run_lengths(a);
  EXPECT(holds(lengthy[0], lengthy[3], unique) && holds(lengthy[1], lengthy[3], lengths) &&
         holds(lengthy[2], lengthy[3], starts));
  ints coarse = x;
  coarse.erase(std::unique(coarse.begin(), coarse.end(),
                           [](std::int32_t p, std::int32_t q) { return p / 1000 == q / 1000; }),
               coarse.end());
  const auto grouped = kjit::unique(a, "true");
  EXPECT(holds(grouped[0], grouped[1], coarse));
}

static void check_sets(const setting &s)
{
  ints x = random_ints(1 + std::size_t(below(1000)), 800),
       y = random_ints(1 + std::size_t(below(1000)), 800);
  std::sort(x.begin(), x.end()), std::sort(y.begin(), y.end());
  const auto a = s.put(x), b = s.put(y);
  ints expected;
  std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(expected));
  const auto all = kjit::set_union(a, b);
  EXPECT(holds(all[0], all[1], expected));
  expected.clear();
  std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(expected));
  const auto both = kjit::set_intersection(a, b);
  EXPECT(holds(both[0], both[1], expected));
  expected.clear();
  std::set_difference(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(expected));
  const auto only = kjit::set_difference(a, b, "a < b");
  EXPECT(holds(only[0], only[1], expected));
  expected.clear();
  std::set_symmetric_difference(x.begin(), x.end(), y.begin(), y.end(),
                                std::back_inserter(expected));
  const auto either = kjit::set_symmetric_difference(a, b);
  EXPECT(holds(either[0], either[1], expected));
}

static void check_maps(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  const doubles x = random_doubles(n), y = random_doubles(n);
  doubles expected(n), difference(n);
  std::transform(x.begin(), x.end(), y.begin(), expected.begin(),
                 [](double p, double q) { return p * q + 1; });
  const kjit::array<double> r = kjit::map("a * b + 1", { s.put(x), s.put(y) });
  EXPECT(close(r.to_vector(), expected));
  std::transform(x.begin(), x.end(), expected.begin(), [](double p) { return p + 0.5; });
  const kjit::created two = kjit::map(s.module.function("both"), { s.put(x), 0.5 });
  std::transform(x.begin(), x.end(), difference.begin(), [](double p) { return p - 0.5; });
  EXPECT(two.size() == 2 && close(two[0].to_vector<double>(), expected) &&
         close(two[1].to_vector<double>(), difference));
  doubles low(n), high(n);
  kjit::map_into({ low, high }, s.module.function("both"), { x, 0.5 },
                 kjit::options().on(s.device));
  EXPECT(close(low, expected) && close(high, difference));
  /* an output func */
  kjit::array<double> doubled(s.device, { n });
  kjit::map_into({ kjit::computed(s.module.function("twice"), { n }, doubled) }, "a", { s.put(x) });
  std::transform(x.begin(), x.end(), expected.begin(), [](double p) { return 2 * p; });
  EXPECT(close(doubled.to_vector(), expected));
  ints counts(8), places = random_ints(n, 8);
  ints histogram(8);
  for (auto &each : places) each = std::abs(each), histogram[std::size_t(each)] += 3;
  kjit::array<std::int32_t> updated = s.put(counts);
  kjit::update_at(updated, s.put(places), 3, kjit::add);
  EXPECT(updated.to_vector() == histogram);
}

static void check_histograms(const setting &s)
{
  const std::size_t n = 1 + std::size_t(below(3000));
  ints x = random_ints(n, 16);
  const doubles y = random_doubles(n), weights = random_doubles(n);
  longs counts(16), bins(8);
  doubles sums(16);
  for (std::size_t i = 0; i < n; i++) {
    x[i] = std::abs(x[i]);
    counts[std::size_t(x[i])]++, sums[std::size_t(x[i])] += weights[i];
    bins[std::min<std::size_t>(7, std::size_t((y[i] + 1) * 4))]++;
  }
  EXPECT(kjit::bincount(s.put(x), 16).to_vector<std::int64_t>() == counts);
  EXPECT(close(kjit::bincount(s.put(x), 16, s.put(weights)).to_vector<double>(), sums));
  EXPECT(kjit::histogram(s.put(y), 8, -1, 1).to_vector<std::int64_t>() == bins);
  doubles edges(9);
  for (std::size_t i = 0; i < 9; i++) edges[i] = -1 + double(i) / 4;
  EXPECT(kjit::histogram_edges(s.put(y), s.put(edges)).to_vector<std::int64_t>() == bins);
}

static void check_products(const setting &s)
{
  const std::size_t m = 1 + std::size_t(below(20)), k = 1 + std::size_t(below(20)),
                    n = 1 + std::size_t(below(20));
  const doubles x = random_doubles(m * k), y = random_doubles(k * n), bias = random_doubles(n);
  doubles expected(m * n), shifted(m * n);
  for (std::size_t i = 0; i < m; i++)
    for (std::size_t j = 0; j < n; j++) {
      for (std::size_t l = 0; l < k; l++) expected[i * n + j] += x[i * k + l] * y[l * n + j];
      shifted[i * n + j] = expected[i * n + j] + bias[j];
    }
  const auto a = s.put(x).reshape({ m, k }), b = s.put(y).reshape({ k, n });
  EXPECT(close(kjit::matmul(a, b).to_vector<double>(), expected));
  EXPECT(close(kjit::einsum("ij,jk->ik", { a, b }).to_vector<double>(), expected));
  const std::vector<kjit::array<double>> list{ a, b }; /* their number is known at run time */
  EXPECT(close(kjit::einsum("ij,jk", list).to_vector<double>(), expected));
  const auto summed = kjit::matmul(a, b, kjit::options().epilogue("a + b", s.put(bias)));
  EXPECT(close(summed.to_vector<double>(), shifted));
  const auto named =
    kjit::matmul(a, b, kjit::options().epilogue(s.module.function("shifted"), s.put(bias)));
  EXPECT(close(named.to_vector<double>(), shifted));
}

static void check_pairs(const setting &s)
{
  const std::size_t m = 1 + std::size_t(below(40)), n = 3 + std::size_t(below(40));
  const doubles x = random_doubles(m), y = random_doubles(n);
  doubles nearest, sums, gradient;
  longs places;
  for (const double p : x) {
    doubles distances;
    for (const double q : y) distances.push_back((p - q) * (p - q));
    const auto least = std::min_element(distances.begin(), distances.end());
    nearest.push_back(*least), places.push_back(least - distances.begin());
    sums.push_back(std::accumulate(distances.begin(), distances.end(), 0.0));
    gradient.push_back(std::accumulate(y.begin(), y.end(), 0.0,
                                       [p](double g, double q) { return g + 2 * (p - q); }));
  }
  const kjit::function f = s.module.function("distance");
  EXPECT(close(kjit::pairs(f, s.put(x), { s.put(y) }, kjit::min).to_vector<double>(), nearest));
  const kjit::any_array one = kjit::pairs_several(f, s.put(x), { s.put(y) }, kjit::add);
  EXPECT(close(one.to_vector<double>(), sums));
  const auto [values, at] = kjit::pairs_smallest(f, s.put(x), { s.put(y) }, 1);
  EXPECT(close(values.to_vector<double>(), nearest) && at.to_vector<std::int64_t>() == places);
  const kjit::created slopes = kjit::pairs_gradient({ 0 }, s.put(doubles(m, 1.0)), kjit::none, f,
                                                    s.put(x), { s.put(y) }, kjit::add);
  EXPECT(slopes.size() == 1 && close(slopes[0].to_vector<double>(), gradient));
}

static void check_sparse(const setting &s)
{
  const std::size_t m = 1 + std::size_t(below(30)), n = 1 + std::size_t(below(30));
  doubles dense(m * n), values;
  ints rows, columns;
  for (int i = 0; i < 60; i++) {
    const std::int32_t r = below(std::int32_t(m)), c = below(std::int32_t(n));
    const double v = random_doubles(1)[0];
    rows.push_back(r), columns.push_back(c), values.push_back(v);
    dense[std::size_t(r) * n + std::size_t(c)] += v;
  }
  const kjit::csr_arrays a = kjit::csr_from_coo(
    kjit::coo(s.put(values), s.put(rows), s.put(columns), std::int64_t(m), std::int64_t(n)));
  kjit::csr_check(a, KJIT_CSR_UNIQUE);
  kjit::array<double> back(s.device, { m, n });
  kjit::csr_to_dense_into(back, a);
  EXPECT(close(back.to_vector(), dense));
  const doubles x = random_doubles(n);
  doubles product(m);
  for (std::size_t i = 0; i < m; i++)
    for (std::size_t j = 0; j < n; j++) product[i] += dense[i * n + j] * x[j];
  EXPECT(close(kjit::spmv(a, s.put(x)).to_vector<double>(), product));
  EXPECT(close(kjit::spmm(a, s.put(x).reshape({ n, 1 })).to_vector<double>(), product));
  const kjit::csr_arrays t = kjit::csr_transpose(kjit::csr_transpose(a));
  EXPECT(close(kjit::spmv(t, s.put(x)).to_vector<double>(), product));
  const kjit::csr_arrays again = kjit::csr_from_dense(back);
  EXPECT(close(kjit::csr_to_dense(again).to_vector<double>(), dense));
  EXPECT(kjit::csr_to_coo(a).size() > 0);
  /* a system with a known solution: the matrix 2 on the diagonal, -1 beside it */
  doubles system, right, truth = random_doubles(n);
  for (std::size_t i = 0; i < n; i++)
    for (std::size_t j = 0; j < n; j++)
      system.push_back(i == j ? 2.5 : i + 1 == j || j + 1 == i ? -1 : 0);
  for (std::size_t i = 0; i < n; i++)
    right.push_back(
      std::inner_product(truth.begin(), truth.end(), system.begin() + std::ptrdiff_t(i * n), 0.0));
  const kjit::csr_arrays laplace = kjit::csr_from_dense(s.put(system).reshape({ n, n }));
  kjit_solve_options precise = kjit::solve_options();
  precise.residual_tolerance = precise.matrix_tolerance = precise.b_tolerance = 1e-12;
  precise.iteration_limit = 1000;
  kjit::array<double> solution(s.device, { n });
  EXPECT(kjit::cg(solution, laplace, s.put(right), precise).status == KJIT_SOLVED);
  const doubles found = solution.to_vector();
  for (std::size_t i = 0; i < n; i++) EXPECT(std::abs(found[i] - truth[i]) < 1e-7);
  EXPECT(kjit::lsmr(solution, laplace, s.put(right), precise).status == KJIT_SOLVED);
  EXPECT(std::abs(solution.to_vector()[0] - truth[0]) < 1e-6);
}

static void check_random(const setting &s)
{
  const std::size_t n = 20000;
  const std::uint64_t seed = engine();
  kjit::array<double> x(s.device, { n }), rest(s.device, { n - 100 });
  kjit::random_uniform(x, seed);
  doubles u = x.to_vector();
  EXPECT(std::all_of(u.begin(), u.end(), [](double v) { return v >= 0 && v < 1; }));
  EXPECT(std::abs(std::accumulate(u.begin(), u.end(), 0.0) / n - 0.5) < 0.02);
  kjit::random_uniform(rest, seed, 100, 0, 1);
  EXPECT(rest.to_vector() == doubles(u.begin() + 100, u.end()));
  kjit::random_normal(x, seed);
  u = x.to_vector();
  EXPECT(std::abs(std::inner_product(u.begin(), u.end(), u.begin(), 0.0) / n - 1) < 0.1);
  kjit::random_exponential(x, seed);
  u = x.to_vector();
  EXPECT(std::abs(std::accumulate(u.begin(), u.end(), 0.0) / n - 1) < 0.1);
  ints dice(1000);
  kjit::random_integers(dice, seed, 0, 1, 6, kjit::options().on(s.device));
  EXPECT(std::set<std::int32_t>(dice.begin(), dice.end()) ==
         (std::set<std::int32_t>{ 1, 2, 3, 4, 5, 6 }));
  ints permutation(500), numbers(500);
  kjit::random_permutation(permutation, seed, kjit::options().on(s.device));
  std::iota(numbers.begin(), numbers.end(), 0);
  EXPECT(kjit::random_shuffle(s.put(numbers), seed).to_vector<std::int32_t>() == permutation);
  std::sort(permutation.begin(), permutation.end());
  EXPECT(permutation == numbers);
}

int main(int argc, char **argv)
{
  const bool is_cuda = argc > 1 && !std::strcmp(argv[1], "cuda");
  const kjit::context context;
  const setting s{ context, is_cuda ? context.cuda() : context.cpu(),
                   context.parse("algorithms.kir", text) };
  check_reductions(s);
  check_scans(s);
  check_segments(s);
  check_keys(s);
  check_sorts(s);
  check_selections(s);
  check_sets(s);
  check_maps(s);
  check_histograms(s);
  check_products(s);
  check_pairs(s);
  check_sparse(s);
  check_random(s);
  std::printf("%s\n", failures ? "wrong" : "right");
  return failures != 0;
}

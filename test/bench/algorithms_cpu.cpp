// algorithms_cpu EXPONENT: the peers of kjit's algorithms on the CPU, for arrays of up to
// 2^EXPONENT elements: loops with OpenMP and, with -DHAS_TBB, C++17's parallel algorithms
// (libstdc++ with oneTBB). The program reads lines `PEER tab ROW tab EXPONENT` and answers each
// with the median and the minimum us of a call, or with `-` if the peer has no such row. Rows and
// data are those of algorithms.c. test/bench/algorithms_cpu.py compiles both programs and measures
// them in turn.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <omp.h>
#include <sys/mman.h>
#ifdef HAS_TBB
#include <execution>
#include <tbb/global_control.h>
#endif

typedef int64_t i64;
typedef uint32_t u32;
typedef uint64_t u64;

// ---- data ----

// Large pages, which kjit's arrays and NumPy's arrays also use.
template <class T> struct large_pages {
  typedef T value_type;
  large_pages() = default;
  template <class U> large_pages(const large_pages<U> &) {}
  T *allocate(size_t count)
  {
    size_t bytes = (count * sizeof(T) + (2u << 20) - 1) >> 21 << 21;
    void *memory = aligned_alloc(2u << 20, bytes);
    if (!memory) throw std::bad_alloc();
    madvise(memory, bytes, MADV_HUGEPAGE);
    return (T *)memory;
  }
  void deallocate(T *memory, size_t) { free(memory); }
  // Allocates without touching the elements, so that the threads that work on them touch them
  // first.
  template <class U> void construct(U *) {}
};
template <class T, class U> bool operator==(large_pages<T>, large_pages<U>) { return true; }
template <class T, class U> bool operator!=(large_pages<T>, large_pages<U>) { return false; }
template <class T> using array = std::vector<T, large_pages<T>>;

static array<u32> words, few, result, back;
static array<u64> wide, result64;
static array<i64> places;
static array<float> reals, other_reals, reals_out;
static array<double> wide_reals, wide_reals_out;
static volatile double sink;

static u64 random_word(i64 i)
{
  u64 z = (u64)(i + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  return z ^ z >> 27;
}

// Pages are touched by the threads that work on them.
static void make_data(i64 n)
{
  words.resize(n), few.resize(n), result.resize(n), back.resize(n);
  wide.resize(n), result64.resize(n), places.resize(n);
  reals.resize(n), other_reals.resize(n), reals_out.resize(n);
  wide_reals.resize(n), wide_reals_out.resize(n);
#pragma omp parallel for
  for (i64 i = 0; i < n; i++) {
    u64 z = random_word(i);
    words[i] = (u32)(z >> 32);
    few[i] = words[i] & 255;
    wide[i] = z;
    reals[i] = (float)(words[i] >> 8) * 0x1p-24f;
    other_reals[i] = 1 - reals[i];
    wide_reals[i] = reals[i];
  }
}

// ---- loops with OpenMP ----

static void omp_sum(i64 n)
{
  const float *x = reals.data();
  float s = 0;
#pragma omp parallel for simd reduction(+ : s)
  for (i64 i = 0; i < n; i++) s += x[i];
  sink = s;
}

static void omp_max(i64 n)
{
  const float *x = reals.data();
  float most = x[0];
#pragma omp parallel for simd reduction(max : most)
  for (i64 i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
  sink = most;
}

struct place {
  float value;
  i64 index;
};
#pragma omp declare reduction( \
  first_most:place \
  : omp_out = omp_in.value > omp_out.value || \
                  (omp_in.value == omp_out.value && omp_in.index < omp_out.index) \
                ? omp_in \
                : omp_out) initializer(omp_priv = { -INFINITY, INT64_MAX })

static void omp_argmax(i64 n)
{
  const float *x = reals.data();
  place best = { -INFINITY, INT64_MAX };
#pragma omp parallel for reduction(first_most : best)
  for (i64 i = 0; i < n; i++)
    if (x[i] > best.value) best = { x[i], i };
  sink = (double)best.index;
}

static void omp_rows(i64 n, i64 columns)
{
  const float *x = reals.data();
  float *r = reals_out.data();
#pragma omp parallel for
  for (i64 row = 0; row < n / columns; row++) {
    float s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 c = 0; c < columns; c++) s += x[row * columns + c];
    r[row] = s;
  }
}

static void omp_columns(i64 n, i64 columns)
{
  const float *x = reals.data();
  float *r = reals_out.data();
  std::fill(r, r + columns, 0.0f);
#pragma omp parallel for reduction(+ : r[:columns])
  for (i64 row = 0; row < n / columns; row++) {
#pragma omp simd
    for (i64 c = 0; c < columns; c++) r[c] += x[row * columns + c];
  }
}

static void omp_line(i64 n)
{
  const float *x = reals.data(), *y = other_reals.data();
  float *r = reals_out.data();
#pragma omp parallel for simd
  for (i64 i = 0; i < n; i++) r[i] = 2.5f * x[i] + y[i];
}

static void omp_exp(i64 n)
{
  const float *x = reals.data();
  float *r = reals_out.data();
#pragma omp parallel for simd
  for (i64 i = 0; i < n; i++) r[i] = std::exp(x[i]);
}

static void omp_broadcast(i64 n)
{
  const float *x = reals.data();
  float *r = reals_out.data();
#pragma omp parallel for
  for (i64 row = 0; row < n / 4096; row++) {
#pragma omp simd
    for (i64 c = 0; c < 4096; c++) r[row * 4096 + c] = x[row] * x[c] + x[row * 4096 + c];
  }
}

// A scan in two passes: first the total of each thread's part, then the scan of each part.
template <class T> static void omp_scan(const T *x, T *r, i64 n)
{
  std::vector<T> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    i64 from = n * thread / threads, to = n * (thread + 1) / threads;
    T s = 0;
#pragma omp simd reduction(+ : s)
    for (i64 i = from; i < to; i++) s += x[i];
    before[thread + 1] = s;
#pragma omp barrier
    s = 0;
    for (int t = 0; t <= thread; t++) s += before[t];
    for (i64 i = from; i < to; i++) r[i] = s += x[i];
  }
}

static void omp_select(i64 n)
{
  const u32 *x = words.data();
  u32 *r = result.data();
  std::vector<i64> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    i64 from = n * thread / threads, to = n * (thread + 1) / threads, kept = 0;
    for (i64 i = from; i < to; i++) kept += x[i] & 1;
    before[thread + 1] = kept;
#pragma omp barrier
    kept = 0;
    for (int t = 0; t <= thread; t++) kept += before[t];
    for (i64 i = from; i < to; i++)
      if (x[i] & 1) r[kept++] = x[i];
  }
  sink = (double)before[1];
}

static void omp_unique(i64 n)
{
  const u32 *x = few.data();
  u32 *r = result.data();
  std::vector<i64> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
    i64 from = n * thread / threads, to = n * (thread + 1) / threads, kept = from == 0;
    for (i64 i = std::max<i64>(from, 1); i < to; i++) kept += x[i] != x[i - 1];
    before[thread + 1] = kept;
#pragma omp barrier
    kept = 0;
    for (int t = 0; t <= thread; t++) kept += before[t];
    if (from == 0) r[kept++] = x[0];
    for (i64 i = std::max<i64>(from, 1); i < to; i++)
      if (x[i] != x[i - 1]) r[kept++] = x[i];
  }
  sink = (double)before[1];
}

static void omp_bincount(i64 n)
{
  u32 counts[256] = { 0 };
#pragma omp parallel for reduction(+ : counts)
  for (i64 i = 0; i < n; i++)
    if (few[i] < 256) counts[few[i]]++;
  sink = counts[0];
}

// The 256 bins of equal width from 0 to 1 that numpy.histogram has; these edges are exact.
static void omp_histogram(i64 n)
{
  const float *x = reals.data();
  u32 counts[256] = { 0 };
#pragma omp parallel for reduction(+ : counts)
  for (i64 i = 0; i < n; i++)
    if (x[i] >= 0 && x[i] <= 1) counts[std::min((int)(x[i] * 256), 255)]++;
  sink = counts[0];
}

// ---- C++17's parallel algorithms ----

#ifdef HAS_TBB
static const auto &par = std::execution::par;

static void par_sort_by_less(i64 n)
{
  std::stable_sort(par, result.begin(), result.begin() + n, [](u32 a, u32 b) { return a < b; });
}

static void par_argsort(i64 n)
{
  std::iota(places.begin(), places.begin() + n, 0);
  std::stable_sort(par, places.begin(), places.begin() + n,
                   [](i64 a, i64 b) { return words[a] < words[b]; });
}
#endif

// ---- rows ----

static const struct row {
  const char *peer, *name;
  void (*prepare)(i64 n); // before each call, not measured; nullptr: nothing
  void (*call)(i64 n);
} rows[] = {
  { "OpenMP", "sum f32", nullptr, omp_sum },
  { "OpenMP", "max f32", nullptr, omp_max },
  { "OpenMP", "argmax f32", nullptr, omp_argmax },
  { "OpenMP", "sum of rows of 4096 f32", nullptr, [](i64 n) { omp_rows(n, 4096); } },
  { "OpenMP", "sum over the first axis, rows of 4096 f32", nullptr,
    [](i64 n) { omp_columns(n, 4096); } },
  { "OpenMP", "sum of rows of 16 f32", nullptr, [](i64 n) { omp_rows(n, 16); } },
  { "OpenMP", "sum over the first axis, rows of 16 f32", nullptr,
    [](i64 n) { omp_columns(n, 16); } },
  { "OpenMP", "map a * x + y f32", nullptr, omp_line },
  { "OpenMP", "map exp f32", nullptr, omp_exp },
  { "OpenMP", "map a[:, None] * b[None] + c, rows of 4096 f32", nullptr, omp_broadcast },
  { "OpenMP", "inclusive scan i32", nullptr,
    [](i64 n) { omp_scan<u32>(words.data(), result.data(), n); } },
  { "OpenMP", "inclusive scan f64", nullptr,
    [](i64 n) { omp_scan<double>(wide_reals.data(), wide_reals_out.data(), n); } },
  { "OpenMP", "select half of u32", nullptr, omp_select },
  { "OpenMP", "unique, 256 values", nullptr, omp_unique },
  { "OpenMP", "histogram, 256 bins of u32", nullptr, omp_bincount },
  { "OpenMP", "histogram, 256 bins of f32", nullptr, omp_histogram },
#ifdef HAS_TBB
  { "C++", "sum f32", nullptr,
    [](i64 n) { sink = std::reduce(par, reals.begin(), reals.begin() + n, 0.0f); } },
  { "C++", "max f32", nullptr,
    [](i64 n) {
      sink = std::reduce(par, reals.begin(), reals.begin() + n, 0.0f,
                         [](float a, float b) { return a > b ? a : b; });
    } },
  { "C++", "argmax f32", nullptr,
    [](i64 n) {
      sink = (double)(std::max_element(par, reals.begin(), reals.begin() + n) - reals.begin());
    } },
  { "C++", "map a * x + y f32", nullptr,
    [](i64 n) {
      std::transform(par, reals.begin(), reals.begin() + n, other_reals.begin(), reals_out.begin(),
                     [](float x, float y) { return 2.5f * x + y; });
    } },
  { "C++", "map exp f32", nullptr,
    [](i64 n) {
      std::transform(par, reals.begin(), reals.begin() + n, reals_out.begin(),
                     [](float x) { return std::exp(x); });
    } },
  { "C++", "inclusive scan i32", nullptr,
    [](i64 n) { std::inclusive_scan(par, words.begin(), words.begin() + n, result.begin()); } },
  { "C++", "inclusive scan f64", nullptr,
    [](i64 n) {
      std::inclusive_scan(par, wide_reals.begin(), wide_reals.begin() + n, wide_reals_out.begin());
    } },
  { "C++", "select half of u32", nullptr,
    [](i64 n) {
      sink = (double)(std::copy_if(par, words.begin(), words.begin() + n, result.begin(),
                                   [](u32 x) { return x & 1; }) -
                      result.begin());
    } },
  { "C++", "unique, 256 values", nullptr,
    [](i64 n) {
      sink = (double)(std::unique_copy(par, few.begin(), few.begin() + n, result.begin()) -
                      result.begin());
    } },
  { "C++", "radix sort u32", [](i64 n) { std::copy_n(words.begin(), n, result.begin()); },
    [](i64 n) { std::sort(par, result.begin(), result.begin() + n); } },
  { "C++", "radix sort u64", [](i64 n) { std::copy_n(wide.begin(), n, result64.begin()); },
    [](i64 n) { std::sort(par, result64.begin(), result64.begin() + n); } },
  { "C++", "radix sort f32", [](i64 n) { std::copy_n(reals.begin(), n, reals_out.begin()); },
    [](i64 n) { std::sort(par, reals_out.begin(), reals_out.begin() + n); } },
  { "C++", "merge sort u32, own comparison",
    [](i64 n) { std::copy_n(words.begin(), n, result.begin()); }, par_sort_by_less },
  { "C++", "argsort u32", nullptr, par_argsort },
#endif
};

static double now_us()
{
  using namespace std::chrono;
  return 1e-3 * (double)duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

// A busy machine may take a hundred times as long as an idle one.
const double MOST_US = 1e6;

struct figures {
  double median, least;
};

// Measures like algorithms.c: several calls at a time if a call is short, except for calls that
// need preparation.
static figures measure(const row &r, i64 n)
{
  double times[15], once = INFINITY;
  auto run = [&](int calls) {
    if (r.prepare) r.prepare(n);
    double start = now_us();
    for (int j = 0; j < calls; j++) r.call(n);
    return (now_us() - start) / calls;
  };
  for (int i = 0; i < 5; i++) once = std::min(once, run(1));
  int count = 0, most = once > 1e5 ? 1 : once > 1e4 ? 5 : 15;
  int calls = r.prepare ? 1 : (int)std::max(1.0, std::min(100.0, 200 / once));
  double end = now_us() + MOST_US;
  do times[count++] = run(calls);
  while (count < most && now_us() < end);
  std::sort(times, times + count);
  return { times[count / 2], std::min(once, times[0]) };
}

int main(int argc, char **argv)
{
  if (argc < 2) return EXIT_FAILURE;
#ifdef HAS_TBB
  tbb::global_control threads(tbb::global_control::max_allowed_parallelism,
                              (size_t)omp_get_max_threads());
#endif
  make_data((i64)1 << atoi(argv[1]));
  char line[200];
  while (fgets(line, sizeof line, stdin)) {
    const char *peer = strtok(line, "\t"), *name = strtok(nullptr, "\t"),
               *exponent = strtok(nullptr, "\n");
    if (!exponent) return EXIT_FAILURE;
    const row *found = nullptr;
    for (const row &r : rows)
      if (!strcmp(r.peer, peer) && !strcmp(r.name, name)) found = &r;
    if (found) {
      figures us = measure(*found, (i64)1 << atoi(exponent));
      printf("%.3f\t%.3f\n", us.median, us.least);
    } else {
      puts("-");
    }
    fflush(stdout);
  }
  return EXIT_SUCCESS;
}

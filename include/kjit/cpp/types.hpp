/* kjit/cpp/types.hpp: C++ types and views of memory for kjit.hpp. Include kjit/kjit.hpp, which
 * includes this file. */
#ifndef KJIT_CPP_TYPES_HPP
#define KJIT_CPP_TYPES_HPP

#include <kjit/cpp/error.hpp>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace kjit {

/* The kjit type for a C++ type. Specialize it for a C++ type that has the same bits as a kjit type,
 * such as a custom half: `template <> struct kjit::type_of<my_half> { static constexpr kjit_type
 * value = KJIT_F16; };` */
template <typename T, typename = void> struct type_of;
template <> struct type_of<bool> {
  static constexpr kjit_type value = KJIT_BOOL;
};
template <> struct type_of<float> {
  static constexpr kjit_type value = KJIT_F32;
};
template <> struct type_of<double> {
  static constexpr kjit_type value = KJIT_F64;
};
template <> struct type_of<std::complex<float>> {
  static constexpr kjit_type value = KJIT_C64;
};
template <> struct type_of<std::complex<double>> {
  static constexpr kjit_type value = KJIT_C128;
};
template <typename T>
struct type_of<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> &&
                                   sizeof(T) <= sizeof(std::uint64_t)>> {
  static constexpr kjit_type value = std::is_signed_v<T> ? (sizeof(T) == 1   ? KJIT_I8
                                                            : sizeof(T) == 2 ? KJIT_I16
                                                            : sizeof(T) == 4 ? KJIT_I32
                                                                             : KJIT_I64)
                                                         : (sizeof(T) == 1   ? KJIT_U8
                                                            : sizeof(T) == 2 ? KJIT_U16
                                                            : sizeof(T) == 4 ? KJIT_U32
                                                                             : KJIT_U64);
};

namespace detail {
template <typename T, typename = void> struct has_type : std::false_type {
};
template <typename T>
struct has_type<T, std::void_t<decltype(type_of<T>::value)>> : std::true_type {
};
/* Returns the kjit type for T. If there is none, compilation stops with a single clear error. */
template <typename T> constexpr kjit_type known_type()
{
  static_assert(has_type<T>::value, "kjit has no type for this C++ type; if it has the same "
                                    "representation as a kjit type, specialize kjit::type_of");
  if constexpr (has_type<T>::value) return type_of<T>::value;
  else return KJIT_ANY;
}

inline std::string text_of(kjit_context *context, kjit_type type)
{
  const copied_text text = take_text(kjit_copy_type_text(context, type));
  return text ? text.get() : "?";
}

/* Throws an exception (TYPE) if `what` has another type than T. */
template <typename T> void expect_type(kjit_context *context, kjit_type found, const char *what)
{
  if (found != known_type<T>())
    fail(KJIT_ERROR_TYPE, std::string(what) + " " + text_of(context, found) + ", not " +
                            text_of(context, known_type<T>()));
}

/* ---- extents ---- */

template <typename I>
inline constexpr bool is_extent = std::is_integral_v<I> && !std::is_same_v<I, bool>;

/* Converts an integer of any type to an extent. */
template <typename I> std::int64_t extent_from(I value)
{
  static_assert(is_extent<I>, "an extent must be an integer");
  if constexpr (std::is_unsigned_v<I> && sizeof(I) >= sizeof(std::int64_t))
    if (value > I(std::numeric_limits<std::int64_t>::max()))
      fail(KJIT_ERROR_ARGUMENT, "an extent must fit in an i64");
  return static_cast<std::int64_t>(value);
}

/* Accepts N arguments of any integer types. */
template <std::size_t N> struct sizes {
  std::array<std::int64_t, N> values;
  template <typename... I, std::enable_if_t<(sizeof...(I) == N) && (is_extent<I> && ...), int> = 0>
  sizes(I... extents) : values{ { extent_from(extents)... } }
  {
  }
  template <typename I, std::enable_if_t<is_extent<I>, int> = 0>
  sizes(const std::array<I, N> &extents) : values()
  {
    for (std::size_t d = 0; d < N; d++) values[d] = extent_from(extents[d]);
  }
};
} // namespace detail

/* Extents of an array: any number of integers of any integer types, `{ rows, 3 }`, or a container
 * of integers. An integer that does not fit into i64 is rejected (ARGUMENT). */
class extents {
public:
  /* Creates extents from integers. Without integers it is the shape of a single element. */
  template <typename... I, std::enable_if_t<(detail::is_extent<I> && ...), int> = 0>
  extents(I... values) : values_{ detail::extent_from(values)... }
  {
  }
  /* Creates extents from a container of integers. */
  template <
    typename R,
    std::enable_if_t<
      detail::is_extent<std::decay_t<decltype(*std::begin(std::declval<const R &>()))>>, int> = 0>
  extents(const R &values)
  {
    for (const auto value : values) values_.push_back(detail::extent_from(value));
  }
  /* Returns the extents. */
  const std::vector<std::int64_t> &values() const noexcept { return values_; }
  /* Returns how many extents there are. */
  std::uint32_t rank() const noexcept { return static_cast<std::uint32_t>(values_.size()); }
  /* Returns the address of the first extent. */
  const std::int64_t *data() const noexcept { return values_.data(); }

private:
  std::vector<std::int64_t> values_;
};

/* ---- views of memory ---- */

/* A view of elements in host memory with N dimensions and strides in elements. It owns nothing.
 * Extents and strides are integers of any types. */
template <typename T, std::size_t N = 1> struct view {
  static_assert(N <= 8, "an array of kjit has at most 8 dimensions");
  T *data;                             /* element at index 0 in each dimension */
  std::array<std::int64_t, N> shape;   /* extents */
  std::array<std::int64_t, N> strides; /* distance between neighbours in each dimension */

  /* Creates a view from extents and strides. A stride may be negative or 0. */
  view(T *first, const detail::sizes<N> &lengths, const detail::sizes<N> &steps)
      : data(first), shape(lengths.values), strides(steps.values)
  {
  }
  /* Creates a row-major, contiguous view. */
  view(T *first, const detail::sizes<N> &lengths) : data(first), shape(lengths.values), strides()
  {
    std::int64_t step = 1;
    for (std::size_t d = N; d-- > 0; step *= shape[d]) strides[d] = step;
  }
};

/* Stands for an argument that a call does not have, and for the default of `less` and `equal`. */
struct none_t {};
inline constexpr none_t none{};

/* An untyped number, which takes its type from the context, like a literal. */
struct number {
  double value; /* an integer literal if integral and within i32, otherwise a float literal */
  /* Creates an untyped number. */
  explicit number(double v) : value(v) {}
};

/* A view or container that a kernel overwrites completely, so kjit does not copy it to a GPU
 * first. */
template <typename V> struct out_only {
  V &value; /* view or container, which must outlive the call */
};
/* Marks an argument that the kernel overwrites completely and does not read: udf(kjit::out(r), a,
 * b). */
template <typename V> out_only<V> out(V &value) { return { value }; }

} // namespace kjit
#endif

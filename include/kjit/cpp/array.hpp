/* kjit/cpp/array.hpp: arrays in device memory for kjit.hpp. Include kjit/kjit.hpp, which includes
 * this file. */
#ifndef KJIT_CPP_ARRAY_HPP
#define KJIT_CPP_ARRAY_HPP

#include <kjit/cpp/stream.hpp>

#if __cplusplus > 202002L && __has_include(<mdspan>)
#include <mdspan>
#endif

namespace kjit {

template <typename T> class array;

namespace detail {
/* The type of a range's elements, without const. */
template <typename R>
using element_of =
  std::remove_const_t<std::remove_pointer_t<decltype(std::data(std::declval<const R &>()))>>;

/* Common base of kjit::array<T> and kjit::any_array, which has no C++ element type. */
class array_base : public owned<kjit_array, kjit_release_array> {
public:
  using owned::owned;
  /* Returns the extents, or an empty vector for an empty handle. */
  std::vector<std::int64_t> shape() const
  {
    const kjit_tensor *tensor = kjit_get_tensor(get());
    return tensor ? std::vector<std::int64_t>(tensor->shape, tensor->shape + tensor->rank)
                  : std::vector<std::int64_t>();
  }
  /* Returns how many elements there are. */
  std::size_t size() const
  {
    const kjit_tensor *tensor = kjit_get_tensor(get());
    std::size_t count = tensor ? 1 : 0;
    for (std::int32_t d = 0; tensor && d < tensor->rank; d++)
      count *= static_cast<std::size_t>(tensor->shape[d]);
    return count;
  }
  /* Returns the element type. */
  kjit_type element() const noexcept { return kjit_get_array_element(get()); }
  /* Returns the device of the memory. */
  kjit::device device() const { return kjit::device(kjit_get_array_device(get()), owner()); }
  /* Returns an argument for the C interface. */
  kjit_arg as_argument() const { return kjit_arg_array(get()); }
  /* Returns a DLPack tensor of the same memory for another library, which calls the deleter. `on`
   * is the stream on which the other library uses the tensor. */
  kjit_managed_tensor *to_dlpack(const stream &on = stream()) const
  {
    return create<kjit_managed_tensor>(context(), kjit_export_dlpack, get(), on.get());
  }

protected:
  kjit_context *context() const { return kjit_get_array_context(get()); }
  kjit_array *reshaped(const extents &shape) const
  {
    return create<kjit_array>(context(), kjit_reshape_array, get(), shape.data(), shape.rank());
  }
  /* Returns a view with the elements first to last - 1 along the first dimension. */
  kjit_array *sliced(std::int64_t first, std::int64_t last) const
  {
    const kjit_array_slice slice = { first, last, 1 };
    return create<kjit_array>(context(), kjit_slice_array, get(), &slice, 1U);
  }
};
} // namespace detail

/* Device memory with a shape, with an element type that is known at run time, such as the result of
 * an algorithm. It converts to kjit::array<T>. Copies of the handle share the memory. */
class any_array : public detail::array_base {
public:
  using detail::array_base::array_base;
  /* Refers to the memory of an array. */
  template <typename T> any_array(const array<T> &other) : array_base(other) {}
  /* Returns the same array with a C++ element type, which must be the type of the elements
   * (TYPE). */
  template <typename T> array<T> as() const
  {
    if (get()) detail::expect_type<T>(context(), element(), "the elements are");
    return array<T>(*this, typename array<T>::checked());
  }
  /* Converts to an array with a C++ element type, like as<T>(). */
  template <typename T> operator array<T>() const { return as<T>(); }
  /* Returns the elements in row-major order and waits for earlier work on the stream. */
  template <typename T> std::vector<T> to_vector(const stream &on = stream()) const
  {
    return as<T>().to_vector(on);
  }
  /* Returns the only element and waits for earlier work on the stream. */
  template <typename T> T value(const stream &on = stream()) const { return as<T>().value(on); }
  /* Returns a view of the same elements, in row-major order, with another shape. */
  any_array reshape(const extents &shape) const { return any_array(reshaped(shape), owner()); }
  /* Returns a view with the elements first to last - 1 along the first dimension. */
  any_array slice(std::int64_t first, std::int64_t last) const
  {
    return any_array(sliced(first, last), owner());
  }
};

/* Device memory with a shape; new arrays are row-major. Copies of the handle share the memory, and
 * views keep it alive. */
template <typename T> class array : public detail::array_base {
public:
  using detail::array_base::array_base;
  /* Allocates an array with undefined contents. */
  array(const kjit::device &where, const extents &shape)
      : array(detail::create<kjit_array>(kjit_get_device_context(where.get()), kjit_create_array,
                                         where.get(), detail::known_type<T>(), shape.data(),
                                         shape.rank()),
              where.keep())
  {
  }
  /* Copies all elements from contiguous host memory with the same number of elements, in row-major
   * order. The call returns when the copy is done. */
  template <typename R> void copy_from(const R &elements, const stream &on = stream())
  {
    static_assert(std::is_same_v<detail::element_of<R>, T>, "elements of the array's type");
    kjit::check(context(), kjit_copy_from_host(get(), std::data(elements),
                                               std::size(elements) * sizeof(T), on.get()));
  }
  /* Returns the elements in row-major order and waits for earlier work on the stream. */
  std::vector<T> to_vector(const stream &on = stream()) const
  {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> has no memory to copy to: take std::uint8_t");
    std::vector<T> elements(size());
    kjit::check(context(),
                kjit_copy_to_host(get(), elements.data(), elements.size() * sizeof(T), on.get()));
    return elements;
  }
  /* Returns the only element and waits for earlier work on the stream. An array with another number
   * of elements is rejected (ARGUMENT). */
  T value(const stream &on = stream()) const
  {
    T element{};
    kjit::check(context(), kjit_copy_to_host(get(), &element, sizeof element, on.get()));
    return element;
  }
  /* Sets every element to value. The work is queued on the stream. */
  void fill(const T &value, const stream &on = stream())
  {
    const detail::argument scalar(value);
    const kjit_arg destination = as_argument(), source = scalar.get();
    kjit::check(context(), kjit_fill(context(), &destination, &source, on.get()));
  }
  /* Returns a view of the same elements, in row-major order, with another shape. */
  array reshape(const extents &shape) const { return array(reshaped(shape), owner()); }
  /* Returns a view with the elements first to last - 1 along the first dimension. */
  array slice(std::int64_t first, std::int64_t last) const
  {
    return array(sliced(first, last), owner());
  }
#ifdef __cpp_lib_mdspan
  /* Returns the elements of an array in CPU memory as an mdspan with N dimensions, which does not
   * keep the memory alive. Work that uses the array must be done. */
  template <std::size_t N>
  std::mdspan<T, std::dextents<std::int64_t, N>, std::layout_stride> mdspan() const
  {
    const kjit_tensor *tensor = kjit_get_tensor(get());
    if (!tensor || tensor->device_type != KJIT_DEVICE_CPU ||
        tensor->rank != static_cast<std::int32_t>(N))
      detail::fail(KJIT_ERROR_ARGUMENT,
                   "an mdspan needs an array in CPU memory with its number of dimensions");
    std::array<std::int64_t, N> lengths{}, steps{};
    std::int64_t step = 1;
    for (std::size_t d = N; d-- > 0; step *= lengths[d]) {
      lengths[d] = tensor->shape[d];
      steps[d] = tensor->strides ? tensor->strides[d] : step;
    }
    using mapping = std::layout_stride::mapping<std::dextents<std::int64_t, N>>;
    return { reinterpret_cast<T *>(static_cast<char *>(tensor->data) + tensor->byte_offset),
             mapping(std::dextents<std::int64_t, N>(lengths), steps) };
  }
#endif

private:
  friend class any_array;
  struct checked {};
  array(const detail::array_base &other, checked) : array_base(other) {}
};

/* Creates an array with one dimension from a contiguous range. */
template <typename R> auto to_device(const device &where, const R &elements)
{
  array<detail::element_of<R>> made(where, { std::size(elements) });
  made.copy_from(elements);
  return made;
}

} // namespace kjit
#endif

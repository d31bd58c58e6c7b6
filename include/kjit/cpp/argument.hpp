/* kjit/cpp/argument.hpp: arguments of calls for kjit.hpp. Include kjit/kjit.hpp, which includes
 * this file. */
#ifndef KJIT_CPP_ARGUMENT_HPP
#define KJIT_CPP_ARGUMENT_HPP

#include <kjit/cpp/types.hpp>

#include <cstring>
#include <deque>

namespace kjit {

namespace detail {

/* Keeps an object's context alive, either directly or through another object that keeps the
 * context. */
using keeper = std::shared_ptr<void>;

template <typename T> using contents = decltype(std::declval<T &>().data());
template <typename T, typename = void> struct is_range : std::false_type {
};
template <typename T>
struct is_range<T, std::void_t<contents<T>, decltype(std::declval<T &>().size())>>
    : std::is_pointer<contents<T>> {
};
template <typename T, typename = void> struct is_mdspan : std::false_type {
};
template <typename T>
struct is_mdspan<T, std::void_t<decltype(T::rank()), decltype(std::declval<T &>().data_handle()),
                                decltype(std::declval<T &>().stride(0))>> : std::true_type {
};
template <typename T, typename = void> struct is_handle : std::false_type {
};
template <typename T>
struct is_handle<T, std::void_t<decltype(std::declval<T &>().as_argument())>> : std::true_type {
};
template <typename T> struct is_std_array : std::false_type {
};
template <typename T, std::size_t N> struct is_std_array<std::array<T, N>> : std::true_type {
};

/* A kjit_arg together with the data that it points to. It cannot be copied, because the pointers
 * must stay valid. */
class argument {
public:
  template <typename T> explicit argument(const T &value) { set(value); }
  argument(const argument &) = delete;
  argument &operator=(const argument &) = delete;
  /* Returns the argument for a launch. It is valid while this object exists. */
  kjit_arg get() const
  {
    if (arg_.kind == KJIT_ARG_TENSOR && tensor_.shape) arg_.value.tensor = &tensor_;
    return arg_;
  }
  bool is_const() const { return is_const_; }

  /* Selects the constructor for an argument that the callee may write, such as a non-const
   * vector. */
  struct writable {};
  template <typename T> argument(T &value, writable) { set_mutable(value); }

private:
  mutable kjit_arg arg_ = {};
  kjit_tensor tensor_ = {};
  std::array<std::int64_t, 8> shape_ = {}, strides_ = {};
  alignas(16) std::array<unsigned char, 16> bytes_ = {};
  bool is_const_ = false;

  template <typename T, std::size_t N> void set_view(const view<T, N> &v)
  {
    using element = std::remove_const_t<T>;
    for (std::size_t d = 0; d < N; d++) shape_[d] = v.shape[d], strides_[d] = v.strides[d];
    tensor_ = kjit_make_tensor(const_cast<element *>(v.data), detail::known_type<element>(),
                               static_cast<std::uint32_t>(N), shape_.data());
    tensor_.strides = strides_.data();
    arg_ = kjit_arg_tensor(&tensor_);
    is_const_ = std::is_const_v<T>;
    if (is_const_) arg_ = kjit_with_access(arg_, KJIT_ACCESS_IN);
  }

  template <typename T> void set(const T &value)
  {
    if constexpr (is_handle<const T>::value) arg_ = value.as_argument();
    else if constexpr (std::is_array_v<T>)
      set_view(view<const std::remove_extent_t<T>>(value, { std::extent_v<T> }));
    else if constexpr (is_mdspan<const T>::value) set_mdspan(value);
    else if constexpr (is_range<const T>::value) {
      using pointer = contents<const T>;
      set_view(view<std::remove_pointer_t<pointer>>(value.data(), { value.size() }));
    } else set_scalar(value);
  }
  template <typename T, std::size_t N> void set(const view<T, N> &v) { set_view(v); }
  template <typename T> void set(const out_only<T> &v)
  {
    static_assert(!std::is_const_v<T>, "kjit::out needs an argument that is not const");
    set_mutable(v.value);
    arg_ = kjit_with_access(arg_, KJIT_ACCESS_OUT);
  }
  void set(const number &v) { arg_ = kjit_arg_number(v.value); }
  void set(const kjit_arg &v) { arg_ = v; }
  template <typename T> void set_scalar(const T &value)
  {
    constexpr kjit_type type = detail::known_type<T>();
    arg_ = kjit_make_arg(KJIT_ARG_VALUE, type);
    if constexpr (std::is_same_v<T, float>) arg_.value.f32 = value;
    else if constexpr (std::is_same_v<T, double>) arg_.value.f64 = value;
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) arg_.value.i = value;
    else if constexpr (std::is_integral_v<T>) arg_.value.u = value;
    else {
      static_assert(sizeof(T) <= sizeof bytes_ && std::is_trivially_copyable_v<T>,
                    "a scalar of kjit has at most 16 bytes");
      std::memcpy(bytes_.data(), &value, sizeof value);
      arg_ = kjit_arg_value(type, bytes_.data());
    }
  }
  template <typename T> void set_mdspan(const T &v)
  {
    constexpr std::size_t rank = T::rank();
    std::array<std::int64_t, rank> shape{}, strides{};
    if constexpr (rank > 0)
      for (std::size_t d = 0; d < rank; d++)
        shape[d] = extent_from(v.extent(d)), strides[d] = static_cast<std::int64_t>(v.stride(d));
    set_view(
      view<std::remove_pointer_t<std::decay_t<decltype(v.data_handle())>>, rank>(v.data_handle(),
                                                                                 shape, strides));
  }
  template <typename T> void set_mutable(T &value)
  {
    if constexpr (std::is_array_v<T>)
      set_view(view<std::remove_extent_t<T>>(value, { std::extent_v<T> }));
    else if constexpr (!is_handle<T>::value && !is_mdspan<T>::value && is_range<T>::value)
      set_view(view<std::remove_pointer_t<contents<T>>>(value.data(), { value.size() }));
    else set(value);
  }
};

/* Returns a writable argument for a non-const lvalue, otherwise a read-only argument. */
template <typename T> argument make_argument(T &&value)
{
  if constexpr (std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>)
    return argument(value, argument::writable());
  else return argument(value);
}

/* Rejects a const argument if the callee writes to the parameter. If the parameter is not known,
 * because it does not exist or belongs to a built-in, the function does nothing. */
template <typename T>
void refuse_if_written(kjit_status (*tell)(T *, std::size_t, kjit_parameter_info *), T *object,
                       const char *what, std::size_t index)
{
  kjit_parameter_info info = {};
  info.size_bytes = sizeof info;
  if (tell(object, index, &info) != KJIT_OK || !info.is_written) return;
  fail(KJIT_ERROR_ARGUMENT, std::string("the ") + what + " writes parameter `" + info.name +
                              "`, and the argument is const");
}

/* Rejects a call if the callee writes to one of its const arguments. */
template <typename T, typename Arguments>
void refuse_written(kjit_status (*tell)(T *, std::size_t, kjit_parameter_info *), T *object,
                    const char *what, const Arguments &kept)
{
  std::size_t index = 0;
  for (const argument &each : kept) {
    if (each.is_const()) refuse_if_written(tell, object, what, index);
    index++;
  }
}

/* Fails to compile if T is a temporary container and the callee keeps a reference to its
 * elements. */
template <typename T> constexpr void expect_lasting()
{
  using type = std::remove_cv_t<std::remove_reference_t<T>>;
  if constexpr (!std::is_lvalue_reference_v<T> && is_range<type>::value)
    static_assert(
      std::is_trivially_copyable_v<type> && !is_std_array<type>::value,
      "the elements are used after the call: pass a container that outlives the object");
}

} // namespace detail

/* A list of arguments, for calls whose number of arguments is known only at run time. Containers
 * and views must outlive the list. Handles are kept alive. */
class arguments {
public:
  /* Creates an empty list. */
  arguments() = default;
  arguments(const arguments &) = delete;
  arguments &operator=(const arguments &) = delete;
  /* Adds an argument of any kind that a kernel takes and returns the list. */
  template <typename T> arguments &add(T &&value)
  {
    using type = std::remove_cv_t<std::remove_reference_t<T>>;
    detail::expect_lasting<T>();
    if constexpr (detail::is_handle<type>::value) owners_.push_back(value.keep());
    if constexpr (std::is_lvalue_reference_v<T> && !std::is_const_v<std::remove_reference_t<T>>)
      kept_.emplace_back(value, detail::argument::writable());
    else kept_.emplace_back(value);
    return *this;
  }
  /* Returns how many arguments there are. */
  std::size_t size() const noexcept { return kept_.size(); }
  /* Returns the arguments for the C interface. They are valid while the list exists. */
  std::vector<kjit_arg> get() const
  {
    std::vector<kjit_arg> found;
    for (const detail::argument &each : kept_) found.push_back(each.get());
    return found;
  }

private:
  friend class kernel;
  friend class function;
  std::deque<detail::argument> kept_;
  std::vector<detail::keeper> owners_;
};

} // namespace kjit
#endif

/* kjit/kjit.hpp: kjit for C++17 and later, header only. Handles own their objects, failures are
 * exceptions, and a kernel is called like a function. Arguments can be numbers, vectors, spans,
 * mdspans and arrays of kjit.
 *
 *   kjit::context context;
 *   kjit::module module = context.parse("axpy.kir", text);
 *   std::vector<float> r(1000), x(1000), y(1000);
 *   module.kernel("axpy")(r, 2.5f, x, y);
 *
 * The header uses only the C interface. A program can use both; get() of a handle returns the C
 * object. The rules of status.h for threads and processes apply here as well.
 *
 * A handle keeps the objects alive that it depends on: a kernel keeps its module, and all objects
 * keep the context, which ends with the last handle. Every call rejects an empty handle (MISUSE),
 * which was default-constructed or moved from. A handle for an existing C object keeps only the
 * objects that its constructor receives. */
#ifndef KJIT_KJIT_HPP
#define KJIT_KJIT_HPP

#if __cplusplus < 201703L
#error "kjit/kjit.hpp needs C++17 or later: -std=c++17"
#endif

#include <kjit/kjit.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace kjit {

/* ---- failures ---- */

/* Exception of every failing call. It has the status; what() returns the name of the status and the
 * diagnostics with source lines and carets. The class is visible, so that a library can catch
 * exceptions of another library with hidden symbols. */
class KJIT_API error : public std::runtime_error {
public:
  /* Creates an exception for a status, with the text for what(). */
  error(kjit_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
  /* Returns the status of the call. */
  kjit_status status() const noexcept { return status_; }

private:
  kjit_status status_;
};

/* Throws an exception if a call on the context failed, also for calls of the C interface. context
 * can be NULL. */
inline void check(kjit_context *context, kjit_status status)
{
  if (status == KJIT_OK) return;
  std::string text = kjit_get_status_name(status);
  if (char *diagnostics = context ? kjit_copy_diagnostics_text(context) : nullptr) {
    std::unique_ptr<char, void (*)(char *)> kept(diagnostics,
                                                 [](char *p) { kjit_free(nullptr, p); });
    text.append("\n").append(diagnostics);
  }
  throw error(status, text);
}

/* ---- types ---- */

/* The type of kjit for a C++ type. Specialize it for a C++ type with the bits of a kjit type, such
 * as a custom half: `template <> struct kjit::type_of<my_half> { static constexpr kjit_type value =
 * KJIT_F16; };` */
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
/* Returns the type, or fails with a single clear error if there is none. */
template <typename T> constexpr kjit_type known_type()
{
  static_assert(has_type<T>::value, "kjit has no type for this C++ type; specialize kjit::type_of "
                                    "if it has the bits of a type of kjit");
  if constexpr (has_type<T>::value) return type_of<T>::value;
  else return KJIT_ANY;
}
} // namespace detail

/* ---- views of memory ---- */

/* A view of elements in host memory with N dimensions and strides in elements. It owns nothing. */
template <typename T, std::size_t N = 1> struct view {
  static_assert(N <= 8, "an array of kjit has at most 8 dimensions");
  T *data;                             /* element at index 0 in each dimension */
  std::array<std::int64_t, N> shape;   /* extents */
  std::array<std::int64_t, N> strides; /* distance between neighbours in each dimension */

  /* Creates a view from extents and strides. A stride may be negative or 0. */
  view(T *first, const std::array<std::int64_t, N> &extents,
       const std::array<std::int64_t, N> &steps)
      : data(first), shape(extents), strides(steps)
  {
  }
  /* Creates a row-major, contiguous view. */
  view(T *first, const std::array<std::int64_t, N> &extents) : data(first), shape(extents)
  {
    std::int64_t step = 1;
    for (std::size_t d = N; d-- > 0; step *= shape[d]) strides[d] = step;
  }
};

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

/* ---- handles ---- */

namespace detail {

/* Keeps alive what an object depends on: the context, or an object that keeps the context. */
using keeper = std::shared_ptr<void>;

/* Shares a C object among copies of the handle. The last copy releases the object and then what it
 * depends on. */
template <typename T, void (*release)(T *)> class owned {
public:
  owned() = default;
  /* Takes ownership of a C object, which the last copy releases. `on` is another handle's keep()
   * result, which stays alive until then. */
  explicit owned(T *object, keeper on = nullptr) : object_(object, releaser{ std::move(on) }) {}
  /* Returns the C object, borrowed, or NULL for an empty handle. */
  T *get() const noexcept { return object_.get(); }
  /* Returns an owner of the object, for handles that depend on it. */
  keeper keep() const noexcept { return object_; }

private:
  struct releaser {
    keeper on;
    void operator()(T *object) const { release(object); }
  };
  std::shared_ptr<T> object_;
};

/* Refers to an object that belongs to another object, and keeps that object alive. */
template <typename T> class borrowed {
public:
  /* Refers to a C object that is released elsewhere. `on` is another handle's keep() result, which
   * stays alive. */
  explicit borrowed(T *object, const keeper &on = nullptr) : object_(on, object) {}
  /* Returns the C object, borrowed, or NULL for an empty handle. */
  T *get() const noexcept { return object_.get(); }
  /* Returns an owner of the object, for handles that depend on it. */
  keeper keep() const noexcept { return object_; }

private:
  std::shared_ptr<T> object_;
};

inline void end_context(kjit_context *context) { (void)kjit_destroy_context(context); }

/* A kjit_arg together with the data that it points to. It cannot be copied, because the pointers
 * must stay valid. */
class argument {
public:
  template <typename T> explicit argument(const T &value) { set(value); }
  argument(const argument &) = delete;
  argument &operator=(const argument &) = delete;
  /* Returns the argument for a launch. It is valid while this object exists. */
  kjit_arg get()
  {
    if (arg_.kind == KJIT_ARG_TENSOR) {
      tensor_.shape = shape_.data();
      tensor_.strides = strides_.data();
      arg_.value.tensor = &tensor_;
    }
    return arg_;
  }
  bool is_const() const { return is_const_; }

private:
  kjit_arg arg_ = {};
  kjit_tensor tensor_ = {};
  std::array<std::int64_t, 8> shape_ = {}, strides_ = {};
  bool is_const_ = false;

  template <typename T, std::size_t N> void set_view(const view<T, N> &v)
  {
    using element = std::remove_const_t<T>;
    for (std::size_t d = 0; d < N; d++) shape_[d] = v.shape[d], strides_[d] = v.strides[d];
    tensor_ =
      kjit_make_tensor(const_cast<element *>(v.data), detail::known_type<element>(), N, nullptr);
    arg_ = kjit_arg_tensor(&tensor_);
    is_const_ = std::is_const_v<T>;
    if (is_const_) arg_ = kjit_with_access(arg_, KJIT_ACCESS_IN);
  }

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

  template <typename T> void set(const T &value)
  {
    if constexpr (is_handle<const T>::value) arg_ = value.as_argument();
    else if constexpr (std::is_array_v<T>)
      set_view(view<const std::remove_extent_t<T>>(value, { std::extent_v<T> }));
    else if constexpr (is_mdspan<const T>::value) set_mdspan(value);
    else if constexpr (is_range<const T>::value) {
      using pointer = contents<const T>;
      set_view(view<std::remove_pointer_t<pointer>>(value.data(), { std::int64_t(value.size()) }));
    } else set_scalar(value);
  }
  template <typename T, std::size_t N> void set(const view<T, N> &v) { set_view(v); }
  template <typename T> void set(const out_only<T> &v)
  {
    static_assert(!std::is_const_v<T>, "kjit::out needs something that can be written");
    set_mutable(v.value);
    arg_ = kjit_with_access(arg_, KJIT_ACCESS_OUT);
  }
  void set(const number &v) { arg_ = kjit_arg_number(v.value); }
  void set(const kjit_arg &v) { arg_ = v; }
  template <typename T> void set_scalar(const T &value)
  {
    arg_ = kjit_make_arg(KJIT_ARG_VALUE, detail::known_type<T>());
    if constexpr (std::is_same_v<T, float>) arg_.value.f32 = value;
    else if constexpr (std::is_same_v<T, double>) arg_.value.f64 = value;
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) arg_.value.i = value;
    else if constexpr (std::is_integral_v<T>) arg_.value.u = value;
    else arg_ = kjit_arg_value(detail::known_type<T>(), &value);
  }
  template <typename T> void set_mdspan(const T &v)
  {
    constexpr std::size_t rank = T::rank();
    std::array<std::int64_t, rank> shape{}, strides{};
    for (std::size_t d = 0; d < rank; d++)
      shape[d] = std::int64_t(v.extent(d)), strides[d] = std::int64_t(v.stride(d));
    set_view(view<std::remove_pointer_t<decltype(v.data_handle())>, rank>(v.data_handle(), shape,
                                                                          strides));
  }

public:
  /* Creates an argument that the callee may write: a non-const vector is passed as writable. */
  struct writable {};
  template <typename T> argument(T &value, writable) { set_mutable(value); }

private:
  template <typename T> void set_mutable(T &value)
  {
    if constexpr (std::is_array_v<T>)
      set_view(view<std::remove_extent_t<T>>(value, { std::extent_v<T> }));
    else if constexpr (!is_handle<T>::value && !is_mdspan<T>::value && is_range<T>::value)
      set_view(
        view<std::remove_pointer_t<contents<T>>>(value.data(), { std::int64_t(value.size()) }));
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

/* Rejects a const argument if the parameter is written. If the parameter is not known, because it
 * does not exist or belongs to a built-in, the function does nothing. */
template <typename T>
void refuse_if_written(kjit_status (*tell)(T *, std::size_t, kjit_parameter_info *), T *object,
                       const char *what, std::size_t index)
{
  kjit_parameter_info info = {};
  info.size_bytes = sizeof info;
  if (tell(object, index, &info) != KJIT_OK || !info.is_written) return;
  throw error(KJIT_ERROR_ARGUMENT, std::string("KJIT_ERROR_ARGUMENT\nthe ") + what +
                                     " writes parameter `" + info.name +
                                     "`, and the argument is const");
}

} // namespace detail

/* A queue of launches and copies on a device. Copies of the handle refer to the same stream. */
class stream : public detail::owned<kjit_stream, kjit_destroy_stream> {
public:
  using owned::owned;
  /* Waits for the work on the stream and throws failures of kernels. */
  void synchronize() const
  {
    kjit::check(kjit_get_stream_context(get()), kjit_synchronize_stream(get()));
  }
};

/* A GPU, or the CPU. It belongs to its context. */
class device : public detail::borrowed<kjit_device> {
public:
  using borrowed::borrowed;
  /* Waits for all work on the device and throws failures of kernels. */
  void synchronize() const
  {
    kjit::check(kjit_get_device_context(get()), kjit_synchronize_device(get()));
  }
  /* Returns name, limits and memory size of the device. */
  kjit_device_info info() const
  {
    kjit_device_info found = {};
    found.size_bytes = sizeof found;
    kjit::check(kjit_get_device_context(get()), kjit_get_device_info(get(), &found));
    return found;
  }
  /* Creates a stream on the device. */
  stream create_stream() const
  {
    kjit_stream *made = nullptr;
    kjit::check(kjit_get_device_context(get()), kjit_create_stream(get(), &made));
    return stream(made, keep());
  }
};

/* Device memory with a shape; new arrays are row-major. Copies of the handle share the memory, and
 * views keep it alive. */
template <typename T> class array : public detail::owned<kjit_array, kjit_release_array> {
public:
  using detail::owned<kjit_array, kjit_release_array>::owned;
  /* Allocates an array with undefined contents. */
  array(const device &where, const std::vector<std::int64_t> &shape)
      : array(make(where, shape), where.keep())
  {
  }
  /* Returns the extents, or an empty vector for an empty handle. */
  std::vector<std::int64_t> shape() const
  {
    const kjit_tensor *tensor = kjit_get_tensor(this->get());
    return tensor ? std::vector<std::int64_t>(tensor->shape, tensor->shape + tensor->rank)
                  : std::vector<std::int64_t>();
  }
  /* Returns the number of elements. */
  std::size_t size() const
  {
    const kjit_tensor *tensor = kjit_get_tensor(this->get());
    std::size_t count = tensor ? 1 : 0;
    for (std::int32_t d = 0; tensor && d < tensor->rank; d++)
      count *= std::size_t(tensor->shape[d]);
    return count;
  }
  /* Copies all elements from contiguous host memory with the same number of elements, in row-major
   * order. The call returns when the copy is done. */
  template <typename R> void copy_from(const R &elements, const stream &on = stream())
  {
    static_assert(
      std::is_same_v<std::remove_const_t<std::remove_pointer_t<decltype(std::data(elements))>>, T>,
      "elements of the array's type");
    kjit::check(context(), kjit_copy_from_host(this->get(), std::data(elements),
                                               std::size(elements) * sizeof(T), on.get()));
  }
  /* Returns the elements in row-major order and waits for earlier work on the stream. */
  std::vector<T> to_vector(const stream &on = stream()) const
  {
    static_assert(!std::is_same_v<T, bool>,
                  "std::vector<bool> has no memory to copy to: take std::uint8_t");
    std::vector<T> elements(size());
    kjit::check(context(), kjit_copy_to_host(this->get(), elements.data(),
                                             elements.size() * sizeof(T), on.get()));
    return elements;
  }
  /* Sets every element to value. The work is queued on the stream. */
  void fill(const T &value, const stream &on = stream())
  {
    detail::argument scalar(value);
    kjit_arg destination = as_argument(), source = scalar.get();
    kjit::check(context(), kjit_fill(context(), &destination, &source, on.get()));
  }
  /* Returns a view of the same elements, in row-major order, with another shape. */
  array reshape(const std::vector<std::int64_t> &shape) const
  {
    kjit_array *made = nullptr;
    kjit::check(context(),
                kjit_reshape_array(this->get(), shape.data(), std::uint32_t(shape.size()), &made));
    return array(made, this->keep());
  }
  /* Returns an argument for calls of the C interface. */
  kjit_arg as_argument() const { return kjit_arg_array(this->get()); }

private:
  kjit_context *context() const { return kjit_get_array_context(this->get()); }
  static kjit_array *make(const device &where, const std::vector<std::int64_t> &shape)
  {
    kjit_array *made = nullptr;
    kjit::check(kjit_get_device_context(where.get()),
                kjit_create_array(where.get(), detail::known_type<T>(), shape.data(),
                                  std::uint32_t(shape.size()), &made));
    return made;
  }
};

/* Creates an array with one dimension from a contiguous range. */
template <typename R> auto to_device(const device &where, const R &elements)
{
  using element = std::remove_const_t<std::remove_pointer_t<decltype(std::data(elements))>>;
  array<element> made(where, { std::int64_t(std::size(elements)) });
  made.copy_from(elements);
  return made;
}

/* A kernel with launch options, called like a function.
 *
 * A non-const lvalue argument can be written by the kernel. Const elements and temporaries that own
 * their elements are read-only, and a kernel that writes them is rejected (ARGUMENT). An array
 * handle refers to writable memory even if it is const, like a span. Host memory must live until
 * the stream has passed the launch. On the CPU, and on a GPU with host memory as an argument, the
 * call returns after that. */
class kernel : public detail::borrowed<kjit_kernel> {
public:
  /* Refers to a C object. `on` is another handle's keep() result, which stays alive. */
  explicit kernel(kjit_kernel *object, const detail::keeper &on = nullptr) : borrowed(object, on)
  {
    config_.size_bytes = sizeof config_;
  }

  /* Returns the same kernel with a grid of blocks. block, on and shared work in the same way. kjit
   * chooses options that are not set. */
  kernel grid(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) const
  {
    kernel k = *this;
    set(k.config_.grid, x, y, z);
    return k;
  }
  /* Returns the same kernel with a block of threads. */
  kernel block(std::uint32_t x, std::uint32_t y = 1, std::uint32_t z = 1) const
  {
    kernel k = *this;
    set(k.config_.block, x, y, z);
    return k;
  }
  /* Returns the same kernel for launches on a stream. */
  kernel on(const stream &s) const
  {
    kernel k = *this;
    k.stream_ = s;
    k.config_.stream = s.get();
    return k;
  }
  /* Returns the same kernel for a device. Without it the kernel runs on the device of the arrays,
   * or on the first device. */
  kernel on(const device &d) const
  {
    kernel k = *this;
    k.config_.device = d.get();
    k.device_ = d.keep();
    return k;
  }
  /* Returns the same kernel with dynamic shared memory. */
  kernel shared(std::uint64_t size_bytes) const
  {
    kernel k = *this;
    k.config_.dynamic_shared_bytes = size_bytes;
    return k;
  }
  /* Returns the launch's options, for all other fields. */
  kjit_launch_config &config() noexcept { return config_; }

  /* Launches the kernel with arguments. */
  template <typename... Ts> void operator()(Ts &&...values) const
  {
    if constexpr (sizeof...(Ts) == 0) launch(nullptr, 0);
    else {
      detail::argument kept[] = { detail::make_argument(std::forward<Ts>(values))... };
      kjit_arg arguments[sizeof...(Ts)];
      for (std::size_t i = 0; i < sizeof...(Ts); i++) {
        arguments[i] = kept[i].get();
        if (kept[i].is_const())
          detail::refuse_if_written(kjit_get_parameter_info, get(), "kernel", i);
      }
      launch(arguments, sizeof...(Ts));
    }
  }

private:
  kjit_launch_config config_ = {};
  stream stream_;
  detail::keeper device_;

  static void set(std::uint32_t (&to)[3], std::uint32_t x, std::uint32_t y, std::uint32_t z)
  {
    to[0] = x, to[1] = y, to[2] = z;
  }
  void launch(const kjit_arg *arguments, std::size_t count) const
  {
    kjit::check(kjit_get_kernel_context(get()), kjit_launch(get(), &config_, arguments, count));
  }
};

/* A func, which can be an argument of a kernel or be called on the CPU. */
class function : public detail::borrowed<kjit_function> {
public:
  using borrowed::borrowed;
  /* Returns an argument for calls of the C interface. */
  kjit_arg as_argument() const { return kjit_arg_function(get()); }
  /* Calls the func on the CPU with arguments in host memory and returns its result, which must have
   * type R. Const arguments and temporaries are read-only, as for kernels. */
  template <typename R, typename... Ts> R call(Ts &&...values) const
  {
    static_assert(std::is_void_v<R> || std::is_arithmetic_v<R>,
                  "call a func that returns several values with kjit_call_function");
    if constexpr (sizeof...(Ts) == 0) return call_with<R>(nullptr, 0);
    else {
      detail::argument kept[] = { detail::make_argument(std::forward<Ts>(values))... };
      kjit_arg arguments[sizeof...(Ts)];
      for (std::size_t i = 0; i < sizeof...(Ts); i++) {
        arguments[i] = kept[i].get();
        if (kept[i].is_const())
          detail::refuse_if_written(kjit_get_function_parameter_info, get(), "func", i);
      }
      return call_with<R>(arguments, sizeof...(Ts));
    }
  }

private:
  template <typename R> R call_with(const kjit_arg *arguments, std::size_t count) const
  {
    kjit_arg result = {};
    kjit_context *context = kjit_get_function_context(get());
    kjit::check(context, kjit_call_function(get(), arguments, count, &result));
    if constexpr (!std::is_void_v<R>) {
      if (result.type != detail::known_type<R>())
        throw error(KJIT_ERROR_TYPE, "KJIT_ERROR_TYPE\nthe func returns " +
                                       text_of(context, result.type) + ", not " +
                                       text_of(context, detail::known_type<R>()));
      if constexpr (std::is_same_v<R, float>) return result.value.f32;
      else if constexpr (std::is_same_v<R, double>) return result.value.f64;
      else if constexpr (std::is_signed_v<R>) return R(result.value.i);
      else return R(result.value.u);
    }
  }
  static std::string text_of(kjit_context *context, kjit_type type)
  {
    std::unique_ptr<char, void (*)(char *)> text(kjit_copy_type_text(context, type),
                                                 [](char *p) { kjit_free(nullptr, p); });
    return text ? text.get() : "?";
  }
};

/* A module with kernels and funcs. Copies of the handle refer to the same module. */
class module : public detail::owned<kjit_module, kjit_release_module> {
public:
  using owned::owned;
  /* Returns a kernel by name. */
  kjit::kernel kernel(const std::string &name) const
  {
    kjit_kernel *found = nullptr;
    kjit::check(kjit_get_module_context(get()), kjit_get_kernel(get(), name.c_str(), &found));
    return kjit::kernel(found, keep());
  }
  /* Returns a func by name. */
  kjit::function function(const std::string &name) const
  {
    kjit_function *found = nullptr;
    kjit::check(kjit_get_module_context(get()), kjit_get_function(get(), name.c_str(), &found));
    return kjit::function(found, keep());
  }
  /* Returns the canonical text. */
  std::string text() const
  {
    char *copy = nullptr;
    kjit::check(kjit_get_module_context(get()), kjit_copy_module_text(get(), &copy));
    std::unique_ptr<char, void (*)(char *)> kept(copy, [](char *p) { kjit_free(nullptr, p); });
    return copy;
  }
};

/* A context, which owns all other objects. Copies of the handle refer to the same context. It ends
 * with the last of these copies and of the handles created from it. */
class context : public detail::owned<kjit_context, detail::end_context> {
public:
  /* Creates a context with the default configuration. */
  context() : context(config()) {}
  /* Creates a context with a configuration, for example with checks or a cache directory. */
  explicit context(const kjit_config &config) : owned(make(config)) {}
  /* Returns the default configuration, to be changed and passed to the constructor. */
  static kjit_config config()
  {
    kjit_config defaults = {};
    defaults.size_bytes = sizeof defaults;
    return defaults;
  }
  /* Parses kernel IR text; name is the name in messages. */
  kjit::module parse(const std::string &name, std::string_view text) const
  {
    kjit_module *made = nullptr;
    kjit::check(get(), kjit_parse_module(get(), name.c_str(), text.data(), text.size(), &made));
    return kjit::module(made, keep());
  }
  /* Returns a device by kind and index. */
  kjit::device device(kjit_device_kind kind, std::int32_t ordinal = 0) const
  {
    kjit_device *found = nullptr;
    kjit::check(get(), kjit_get_device(get(), kind, ordinal, &found));
    return kjit::device(found, keep());
  }
  /* Returns the CPU device. */
  kjit::device cpu() const { return device(KJIT_DEVICE_CPU); }
  /* Returns a GPU, by default the first. */
  kjit::device cuda(std::int32_t ordinal = 0) const { return device(KJIT_DEVICE_CUDA, ordinal); }
  /* Returns the number of devices of a kind; 0 GPUs without a driver. */
  std::uint32_t device_count(kjit_device_kind kind) const
  {
    return kjit_get_device_count(get(), kind);
  }
  /* Returns counters of the context: launches, compilations, cache hits. */
  kjit_statistics statistics() const
  {
    kjit_statistics found = {};
    found.size_bytes = sizeof found;
    kjit::check(get(), kjit_get_statistics(get(), &found));
    return found;
  }
  /* Throws an exception if a call of the C interface on this context failed. */
  void check(kjit_status status) const { kjit::check(get(), status); }

private:
  static kjit_context *make(const kjit_config &config)
  {
    kjit_context *made = nullptr;
    kjit::check(nullptr, kjit_create_context(&config, &made));
    return made;
  }
};

} // namespace kjit
#endif

/* kjit/cpp/kernel.hpp: modules, kernels and funcs for kjit.hpp. Include kjit/kjit.hpp, which
 * includes this file. */
#ifndef KJIT_CPP_KERNEL_HPP
#define KJIT_CPP_KERNEL_HPP

#include <kjit/cpp/array.hpp>

#include <string_view>

namespace kjit {

/* The compiled code of a kernel for one tuple of argument types and facts (properties of the
 * arguments that the code relies on). */
class specialization : public detail::borrowed<kjit_specialization> {
public:
  using borrowed::borrowed;
  /* Returns registers, sizes and times of the code. The texts in it belong to the kernel. */
  kjit_specialization_info info() const
  {
    kjit_specialization_info found = {};
    found.size_bytes = sizeof found;
    kjit::check(kjit_get_specialization_context(get()),
                kjit_get_specialization_info(get(), &found));
    return found;
  }
};

/* A launch that is ready to run: its arguments are bound and its code is compiled. Only one thread
 * at a time may use it. */
class prepared : public detail::owned<kjit_prepared, kjit_destroy_prepared> {
public:
  using owned::owned;
  /* Runs the launch on the stream of the kernel from which it was prepared. */
  void run() const { kjit::check(context(), kjit_run_prepared(get(), nullptr)); }
  /* Runs the launch on a stream. */
  void run(const stream &on) const { kjit::check(context(), kjit_run_prepared(get(), on.get())); }
  /* Replaces an argument by another argument with the same type and number of dimensions. A
   * container must outlive the prepared launch. */
  template <typename T> void set(std::size_t index, T &&value) const
  {
    detail::expect_lasting<T>();
    const detail::argument kept = detail::make_argument(std::forward<T>(value));
    if (kept.is_const() && kernel_)
      detail::refuse_if_written(kjit_get_parameter_info, kernel_, "kernel", index);
    const kjit_arg one = kept.get();
    kjit::check(context(), kjit_set_prepared_argument(get(), index, &one));
  }

private:
  friend class kernel;
  /* The kernel that prepare() was called on, which `owner` keeps alive; NULL if the object was made
   * from a C object. */
  kjit_kernel *kernel_ = nullptr;

  prepared(kjit_prepared *object, kjit_kernel *kernel, const detail::keeper &on)
      : owned(object, on), kernel_(kernel)
  {
  }
  kjit_context *context() const { return kjit_get_prepared_context(get()); }
};

/* A kernel with launch options, called like a function.
 *
 * A non-const lvalue argument can be written by the kernel. Const elements and temporaries that own
 * their elements are read-only, and a kernel that writes them is rejected (ARGUMENT). An array
 * handle refers to writable memory even if it is const, like a span. Host memory must live until
 * the stream has passed the launch. On the CPU, and on a GPU with host memory as an argument, the
 * call returns only when the kernel has finished. */
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
    if (!d.get()) kjit::check(nullptr, KJIT_ERROR_MISUSE);
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
  /* Returns the launch options, so that the caller can set the other fields. */
  kjit_launch_config &config() noexcept { return config_; }

  /* Launches the kernel with arguments. */
  template <typename... Ts> void operator()(Ts &&...values) const
  {
    with_arguments([this](const kjit_arg *given, std::size_t count) { launch_with(given, count); },
                   std::forward<Ts>(values)...);
  }
  /* Launches the kernel with a list of arguments, whose number is known at run time. */
  void launch(const arguments &list) const
  {
    detail::refuse_written(kjit_get_parameter_info, get(), "kernel", list.kept_);
    const std::vector<kjit_arg> given = list.get();
    launch_with(given.data(), given.size());
  }
  /* Binds arguments and compiles the code, for a launch that runs any number of times. Containers
   * must outlive the prepared launch. */
  template <typename... Ts> prepared prepare(Ts &&...values) const
  {
    (detail::expect_lasting<Ts>(), ...);
    kjit_prepared *made = nullptr;
    with_arguments(
      [this, &made](const kjit_arg *given, std::size_t count) {
        kjit::check(context(), kjit_prepare_launch(get(), &config_, given, count, &made));
      },
      std::forward<Ts>(values)...);
    return prepared(made, get(), keep());
  }
  /* Compiles the kernel for a signature such as "f32[:] C, f32, f32[:] C" before its first launch.
   * The code is for the kernel's device, or for the first device of the context. */
  specialization specialize(const std::string &signature) const
  {
    return specialization(detail::create<kjit_specialization>(context(), kjit_specialize, get(),
                                                              config_.device, signature.c_str()),
                          keep());
  }

private:
  kjit_launch_config config_ = {};
  stream stream_;
  detail::keeper device_;

  kjit_context *context() const { return kjit_get_kernel_context(get()); }
  static void set(std::uint32_t (&to)[3], std::uint32_t x, std::uint32_t y, std::uint32_t z)
  {
    to[0] = x, to[1] = y, to[2] = z;
  }
  template <typename F, typename... Ts> void with_arguments(F &&use, Ts &&...values) const
  {
    if constexpr (sizeof...(Ts) == 0) use(nullptr, 0);
    else {
      const detail::argument kept[] = { detail::make_argument(std::forward<Ts>(values))... };
      detail::refuse_written(kjit_get_parameter_info, get(), "kernel", kept);
      kjit_arg given[sizeof...(Ts)];
      for (std::size_t i = 0; i < sizeof...(Ts); i++) given[i] = kept[i].get();
      use(given, sizeof...(Ts));
    }
  }
  void launch_with(const kjit_arg *given, std::size_t count) const
  {
    kjit::check(context(), kjit_launch(get(), &config_, given, count));
  }
};

/* A func, which can be an argument of a kernel or be called on the CPU. */
class function : public detail::borrowed<kjit_function> {
public:
  using borrowed::borrowed;
  /* Returns an argument for the C interface. */
  kjit_arg as_argument() const { return kjit_arg_function(get()); }
  /* Calls the func on the CPU with arguments in host memory and returns its result, which must have
   * type R. Const arguments and temporaries are read-only, as for kernels. */
  template <typename R, typename... Ts> R call(Ts &&...values) const
  {
    static_assert(std::is_void_v<R> || std::is_arithmetic_v<R>,
                  "call a func that returns several values with kjit_call_function");
    if constexpr (sizeof...(Ts) == 0) return call_with<R>(nullptr, 0);
    else {
      const detail::argument kept[] = { detail::make_argument(std::forward<Ts>(values))... };
      detail::refuse_written(kjit_get_function_parameter_info, get(), "func", kept);
      kjit_arg given[sizeof...(Ts)];
      for (std::size_t i = 0; i < sizeof...(Ts); i++) given[i] = kept[i].get();
      return call_with<R>(given, sizeof...(Ts));
    }
  }
  /* Calls the func like call, with a list of arguments, whose number is known at run time. */
  template <typename R> R call_list(const arguments &list) const
  {
    static_assert(std::is_void_v<R> || std::is_arithmetic_v<R>,
                  "call a func that returns several values with kjit_call_function");
    detail::refuse_written(kjit_get_function_parameter_info, get(), "func", list.kept_);
    const std::vector<kjit_arg> given = list.get();
    return call_with<R>(given.data(), given.size());
  }

private:
  template <typename R> R call_with(const kjit_arg *given, std::size_t count) const
  {
    kjit_arg result = {};
    kjit_context *context = kjit_get_function_context(get());
    kjit::check(context, kjit_call_function(get(), given, count, &result));
    if constexpr (!std::is_void_v<R>) {
      detail::expect_type<R>(context, result.type, "the func returns");
      if constexpr (std::is_same_v<R, float>) return result.value.f32;
      else if constexpr (std::is_same_v<R, double>) return result.value.f64;
      else if constexpr (std::is_signed_v<R>) return static_cast<R>(result.value.i);
      else return static_cast<R>(result.value.u);
    }
  }
};

/* A module with kernels and funcs. Copies of the handle refer to the same module. */
class module : public detail::owned<kjit_module, kjit_release_module> {
public:
  using owned::owned;
  /* Returns a kernel by name. */
  kjit::kernel kernel(const std::string &name) const
  {
    return kjit::kernel(detail::create<kjit_kernel>(context(), kjit_get_kernel, get(),
                                                    name.c_str()),
                        keep());
  }
  /* Returns a func by name. */
  kjit::function function(const std::string &name) const
  {
    return kjit::function(detail::create<kjit_function>(context(), kjit_get_function, get(),
                                                        name.c_str()),
                          keep());
  }
  /* Returns a module in which `extern func` declarations without a binding are the funcs of
   * library with the same names. */
  module link(const module &library) const
  {
    return module(detail::create<kjit_module>(context(), kjit_link_module, get(), library.get()),
                  keep());
  }
  /* Returns the canonical text. */
  std::string text() const
  {
    const detail::copied_text copy =
      detail::take_text(detail::create<char>(context(), kjit_copy_module_text, get()));
    return copy.get();
  }

private:
  kjit_context *context() const { return kjit_get_module_context(get()); }
};

} // namespace kjit
#endif

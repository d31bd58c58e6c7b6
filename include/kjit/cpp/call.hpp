/* kjit/cpp/call.hpp: how kjit.hpp calls an algorithm. Include kjit/kjit.hpp, which includes this
 * file. */
#ifndef KJIT_CPP_CALL_HPP
#define KJIT_CPP_CALL_HPP

#include <kjit/cpp/options.hpp>

namespace kjit {

/* The arrays that an algorithm with a fixed number of results has created. A structured binding
 * takes them apart: auto [keys, count] = kjit::unique(x). */
template <std::size_t N> using results = std::array<any_array, N>;

/* The arrays that an algorithm with any number of results has created. A single result converts to
 * an array. */
class created : public std::vector<any_array> {
public:
  using std::vector<any_array>::vector;
  /* Takes the arrays. */
  explicit created(std::vector<any_array> arrays) : vector(std::move(arrays)) {}
  /* Returns the only result. Another number of results is rejected (ARGUMENT). */
  any_array only() const
  {
    if (size() != 1)
      detail::fail(KJIT_ERROR_ARGUMENT,
                   "the call has " + std::to_string(size()) + " results, and 1 is expected");
    return front();
  }
  /* Converts to the only result. */
  operator any_array() const { return only(); }
  /* Converts to the only result with a C++ element type. */
  template <typename T> operator array<T>() const { return only().template as<T>(); }
};

namespace detail {

/* One call of an algorithm. It finds the context, resolves funcs and operators, and creates arrays
 * for results. */
class call {
public:
  call(const char *name, const options &given) : name_(name), given_(&given)
  {
    where_ = given.place_;
    options_ = given.options_;
  }
  /* Registers an argument. An array or func among the arguments determines the context and the
   * device of the call. */
  void add(const operand &one)
  {
    if (!device_ && one.array()) device_ = kjit_get_array_device(one.array());
    if (!one.get()) return;
    const kjit_arg &found = one.get()->argument;
    if (found.kind == KJIT_ARG_ARRAY && !found.value.array) is_empty_ = true;
    if (found.kind == KJIT_ARG_ARRAY)
      suggest({ kjit_get_array_context(found.value.array), one.owner() }, false);
    if (found.kind == KJIT_ARG_FUNCTION)
      suggest({ kjit_get_function_context(found.value.function), one.owner() }, true);
  }
  void add(const operands &list)
  {
    for (const operand *each : list.each()) add(*each);
  }
  void add(const targets &list)
  {
    for (const operand *each : list.each()) add(*each);
  }
  void add(const callable &func) { suggest(func.given()); }
  void add(const operation &one) { suggest(one.given()); }
  void add(const std::vector<operation> &list)
  {
    for (const operation &each : list) add(each);
  }
  void add(std::uint32_t) {}
  void add(std::int64_t) {}
  void add(std::uint64_t) {}
  void add(double) {}
  void add(const std::string &) {}
  void add(const std::vector<std::uint32_t> &) {}
  /* Registers the operands of a sparse matrix. */
  template <typename M> auto add(const M &matrix) -> decltype(matrix.operands()[0], void())
  {
    for (const operand *each : matrix.operands()) add(*each);
  }
  template <typename... Ts> void start(const Ts &...values)
  {
    (void)std::initializer_list<int>{ (add(values), 0)... };
    begin();
  }

  kjit_context *context() const { return where_.context; }
  const kjit_algorithm_options *given() const { return &options_; }
  kjit_function *of(const callable &func, std::size_t count)
  {
    functions_.push_back(func.resolve(where_, count));
    return functions_.back().get();
  }
  const kjit_operator *of(const operation &one)
  {
    operators_.push_back(one.resolve(where_, functions_));
    return &operators_.back();
  }
  const kjit_operator *of(const std::vector<operation> &list)
  {
    for (const operation &each : list) several_.push_back(each.resolve(where_, functions_));
    return several_.data();
  }

  /* Runs the call, or prepares it. */
  template <typename F> void run(F &&function)
  {
    kjit_plan *made = nullptr;
    if (given_->plan_) options_.plan = &made;
    kjit::check(where_.context, function());
    if (given_->plan_) *given_->plan_ = plan(made, where_.owner);
  }
  /* Creates `count` result arrays (0 means that the algorithm decides) and runs the call by
   * function(pointers, operands, count). The pointer for result i is NULL if is_wanted[i] is
   * false. */
  template <typename F> created create(std::size_t count, const bool *is_wanted, F &&function)
  {
    std::vector<kjit_result_info> infos(count ? count : MOST_RESULTS);
    for (kjit_result_info &each : infos) each.element = KJIT_VOID;
    const kjit_algorithm_options kept = options_;
    options_.results = infos.data(), options_.result_count = infos.size();
    options_.work_bytes = nullptr;
    const std::vector<const kjit_operand *> nothing(infos.size(), nullptr);
    kjit::check(where_.context, function(nothing.data(), nullptr, 1));
    options_ = kept;
    while (!count && infos.size() && infos.back().element == KJIT_VOID) infos.pop_back();
    created made;
    std::vector<kjit_operand> written;
    for (std::size_t i = 0; i < infos.size(); i++) {
      const bool is_made = !is_wanted || is_wanted[i];
      made.push_back(is_made ? create_array(infos[i]) : any_array());
      written.push_back(kjit_operand_array(made[i].get()));
    }
    std::vector<const kjit_operand *> pointers;
    for (std::size_t i = 0; i < infos.size(); i++)
      pointers.push_back(made[i].get() ? &written[i] : nullptr);
    run([&] { return function(pointers.data(), written.data(), made.size()); });
    return made;
  }

private:
  enum : std::size_t { MOST_RESULTS = 16 };
  const char *name_;
  const options *given_;
  kjit_algorithm_options options_ = {};
  detail::place where_, weak_;
  kjit_device *device_ = nullptr;
  bool is_empty_ = false;
  kjit_arg initial_ = {};
  std::vector<kjit::function> functions_;
  std::deque<kjit_operator> operators_;
  std::vector<kjit_operator> several_;
  std::vector<kjit_operand> epilogue_;

  /* Reads the options, after all arguments are registered. */
  void begin()
  {
    if (!where_.context) where_ = weak_;
    if (!where_.context || is_empty_)
      detail::fail(KJIT_ERROR_MISUSE,
                   std::string(name_) + (is_empty_ ? ": an array is empty"
                                                   : ": no argument belongs to a context; pass an "
                                                     "array or kjit::options().on(context)"));
    if (given_->has_axes_) {
      static const std::int32_t no_axis = 0;
      options_.axes = given_->axes_.empty() ? &no_axis : given_->axes_.data();
      options_.axis_count = static_cast<std::uint32_t>(given_->axes_.size());
    }
    if (given_->initial_) initial_ = given_->initial_->get(), options_.initial = &initial_;
    if (given_->where_) options_.where = given_->where_->get();
    if (!given_->signature_.empty()) options_.signature = given_->signature_.c_str();
    options_.devices = given_->devices_.empty() ? nullptr : given_->devices_.data();
    options_.device_count = given_->devices_.size();
    options_.work = given_->work_.get();
    read_epilogue();
  }
  /* Suggests the context of an argument as the context of the call. The call uses the context of
   * its first array or, if it has no array, of its first func (is_weak). */
  void suggest(const detail::place &one, bool is_weak)
  {
    detail::place &to = is_weak ? weak_ : where_;
    if (!to.context) to = one;
  }
  void suggest(const kjit::function &func)
  {
    if (func.get()) suggest({ kjit_get_function_context(func.get()), func.keep() }, true);
  }
  void read_epilogue()
  {
    if (!given_->epilogue_) return;
    for (const operand &each : *given_->epilogue_operands_) {
      if (!each.get())
        detail::fail(KJIT_ERROR_ARGUMENT, "kjit::none cannot be an operand of an epilogue");
      epilogue_.push_back(*each.get());
    }
    options_.epilogue = of(*given_->epilogue_, epilogue_.size() + 1);
    options_.epilogue_operands = epilogue_.data();
    options_.epilogue_operand_count = epilogue_.size();
  }
  any_array create_array(const kjit_result_info &info) const
  {
    if (info.element == KJIT_ANY || info.element == KJIT_VOID)
      detail::fail(KJIT_ERROR_TYPE,
                   std::string(name_) +
                     ": the type of the result is not known; pass an array for it");
    kjit_device *device = options_.stream ? kjit_get_stream_device(options_.stream) : nullptr;
    if (!device) device = options_.device ? options_.device : device_;
    if (!device) device = first_device();
    kjit_array_config config = {};
    config.size_bytes = sizeof config;
    config.device = device, config.stream = options_.stream;
    config.element = info.element, config.shape = info.shape, config.rank = info.rank;
    return any_array(detail::create<kjit_array>(where_.context, kjit_create_array_with, &config),
                     where_.owner);
  }
  /* Returns the device that the C functions choose for a call without arrays. */
  kjit_device *first_device() const
  {
    const kjit_device_kind kind =
      kjit_get_device_count(where_.context, KJIT_DEVICE_CUDA) ? KJIT_DEVICE_CUDA : KJIT_DEVICE_CPU;
    return detail::create<kjit_device>(where_.context, kjit_get_device, where_.context, kind, 0);
  }
};

} // namespace detail
} // namespace kjit
#endif

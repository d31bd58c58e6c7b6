/* kjit/cpp/options.hpp: plans and options of algorithms for kjit.hpp. Include kjit/kjit.hpp, which
 * includes this file. */
#ifndef KJIT_CPP_OPTIONS_HPP
#define KJIT_CPP_OPTIONS_HPP

#include <kjit/cpp/operand.hpp>

namespace kjit {

namespace detail {
class call;
}

/* A prepared call of an algorithm: compiled, with its memory allocated. Only one thread may use it
 * at a time. It keeps its arrays alive; other memory must outlive it. */
class plan : public detail::owned<kjit_plan, kjit_destroy_plan> {
public:
  using owned::owned;
  /* Queues the work on the stream of the options. */
  void run() const { kjit::check(context(), kjit_run_plan(get(), nullptr)); }
  /* Queues the work on a stream. It does not wait and can be captured into a graph. */
  void run(const stream &on) const { kjit::check(context(), kjit_run_plan(get(), on.get())); }
  /* Returns how many launches a run has. */
  std::size_t size() const { return get() ? kjit_get_plan_size(get()) : 0; }

private:
  kjit_context *context() const { return kjit_get_plan_context(get()); }
};

/* Options of an algorithm, as a chain: kjit::options().axis(0).descending(). Each algorithm takes
 * some of the options and rejects the others. Each comment below says what the call does with the
 * option. Containers must outlive the call. */
class options {
public:
  /* Creates options that have their defaults. */
  options() { options_.size_bytes = sizeof options_; }
  /* Runs on a device. */
  options &on(const device &where)
  {
    if (!where.get()) kjit::check(nullptr, KJIT_ERROR_MISUSE);
    options_.device = where.get();
    place_ = { kjit_get_device_context(where.get()), where.keep() };
    return *this;
  }
  /* Runs on a stream. */
  options &on(const stream &queue)
  {
    options_.stream = queue.get();
    stream_ = queue;
    place_ = { kjit_get_stream_context(queue.get()), queue.owner() };
    return *this;
  }
  /* Runs in a context, for a call without arrays. */
  options &on(const context &where)
  {
    place_ = { where.get(), where.keep() };
    return *this;
  }
  /* Works along one axis; -1 is the last axis. */
  options &axis(std::int32_t one) { return axes({ one }); }
  /* Works along several axes. */
  options &axes(std::vector<std::int32_t> several)
  {
    axes_ = std::move(several);
    has_axes_ = true;
    return *this;
  }
  /* Sets the type in which a reduction, scan or product computes, as a C++ type. */
  template <typename T> options &accumulator() { return accumulator(detail::known_type<T>()); }
  /* Sets the type in which a reduction, scan or product computes. */
  options &accumulator(kjit_type type)
  {
    options_.accumulator = type;
    return *this;
  }
  /* Combines a value before all elements. */
  template <typename T> options &initial(const T &value)
  {
    initial_ = std::make_shared<detail::argument>(value);
    return *this;
  }
  /* Scans without the element itself. */
  options &exclusive() { return flag(KJIT_ALGORITHM_EXCLUSIVE); }
  /* Sorts in descending order. */
  options &descending() { return flag(KJIT_ALGORITHM_DESCENDING); }
  /* Combines each element in an operand of a map with each element in the others. */
  options &outer() { return flag(KJIT_ALGORITHM_OUTER); }
  /* Returns the index after equal elements in a search. */
  options &right() { return flag(KJIT_ALGORITHM_RIGHT); }
  /* Rounds f32 operands of a product to tf32 on GPUs that have it. */
  options &tf32() { return flag(KJIT_ALGORITHM_TF32); }
  /* Treats u8 elements of a product as FP8 in the format E4M3. */
  options &e4m3() { return flag(KJIT_ALGORITHM_E4M3); }
  /* Treats u8 elements of a product as FP8 in the format E5M2. */
  options &e5m2() { return flag(KJIT_ALGORITHM_E5M2); }
  /* Sorts by the bits begin to end - 1 of numbers. */
  options &bits(std::uint32_t begin, std::uint32_t end)
  {
    options_.begin_bit = begin, options_.end_bit = end;
    return *this;
  }
  /* Writes only elements of a map for which the operand is true, and leaves the others
   * unchanged. */
  template <typename T> options &where(const T &condition)
  {
    where_ = std::make_shared<operand>(condition);
    return *this;
  }
  /* Names the core dimensions of a map, for example "(m,n),(n)->(m)". */
  options &signature(std::string text)
  {
    signature_ = std::move(text);
    return *this;
  }
  /* Reads this many rows from y at a time in a call to pairs. */
  options &chunk(std::uint64_t rows)
  {
    options_.chunk = rows;
    return *this;
  }
  /* Shares the rows of x among devices in a call to pairs. */
  options &devices(const std::vector<device> &several)
  {
    devices_.clear();
    for (const device &each : several) devices_.push_back(each.get());
    if (!several.empty()) place_ = { kjit_get_device_context(several[0].get()), several[0].keep() };
    return *this;
  }
  /* Applies a func to each sum of a product and one element of each operand. */
  template <typename... Ts> options &epilogue(const callable &func, const Ts &...values)
  {
    epilogue_ = std::make_shared<callable>(func);
    epilogue_operands_ = std::make_shared<std::deque<operand>>();
    (void)std::initializer_list<int>{ (epilogue_operands_->emplace_back(values), 0)... };
    return *this;
  }
  /* Uses temporary storage of the application. */
  options &work(const array<std::uint8_t> &memory)
  {
    work_ = memory;
    return *this;
  }
  /* Stores the size of the call's temporary storage. The call does not run. */
  options &query_work(std::uint64_t &size_bytes)
  {
    options_.work_bytes = &size_bytes;
    return *this;
  }
  /* Stores a plan that runs the call any number of times. The call itself does not run. */
  options &prepare(plan &into)
  {
    plan_ = &into;
    return *this;
  }

private:
  friend class detail::call;
  kjit_algorithm_options options_ = {};
  detail::place place_;
  stream stream_;
  std::vector<std::int32_t> axes_;
  bool has_axes_ = false;
  std::shared_ptr<detail::argument> initial_;
  std::shared_ptr<operand> where_;
  std::string signature_;
  std::vector<kjit_device *> devices_;
  std::shared_ptr<callable> epilogue_;
  std::shared_ptr<std::deque<operand>> epilogue_operands_;
  array<std::uint8_t> work_;
  plan *plan_ = nullptr;

  options &flag(kjit_algorithm_flags one)
  {
    options_.flags |= static_cast<std::uint32_t>(one);
    return *this;
  }
};

} // namespace kjit
#endif

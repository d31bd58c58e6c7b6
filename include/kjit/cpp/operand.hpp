/* kjit/cpp/operand.hpp: operators, operands and options of algorithms for kjit.hpp. Include
 * kjit/kjit.hpp, which includes this file. */
#ifndef KJIT_CPP_OPERAND_HPP
#define KJIT_CPP_OPERAND_HPP

#include <kjit/cpp/context.hpp>

#include <initializer_list>
#include <mutex>
#include <optional>

namespace kjit {

/* A built-in operator, such as kjit::add. */
struct named_operator {
  const char *name; /* name of the operator, as in the C interface */
};
/* The built-in operators. and_, or_, xor_ and std_ have an underscore, because the names are
 * reserved in C++. */
inline constexpr named_operator add{ "add" }, mul{ "mul" }, min{ "min" }, max{ "max" },
  fmin{ "fmin" }, fmax{ "fmax" }, and_{ "and" }, or_{ "or" }, xor_{ "xor" },
  logaddexp{ "logaddexp" };
/* The operators that only reductions take. */
inline constexpr named_operator any{ "any" }, all{ "all" }, count_nonzero{ "count_nonzero" },
  argmin{ "argmin" }, argmax{ "argmax" }, mean{ "mean" }, var{ "var" }, std_{ "std" };

namespace detail {

/* The context of a call, together with the handle that keeps the context alive. */
struct place {
  kjit_context *context = nullptr;
  keeper owner;
};

/* An expression text that is parsed into a func in the context of the first call. Later calls reuse
 * the func. */
class text_function {
public:
  text_function(std::string text, std::string names)
      : text_(std::move(text)), names_(std::move(names))
  {
  }
  function get(const place &where)
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (context_ != where.context || !found_.get()) {
      std::vector<std::string> names;
      for (const char name : names_) names.emplace_back(1, name);
      found_ = parse_expression(where.context, where.owner, text_, names);
      context_ = where.context;
    }
    return found_;
  }

private:
  std::mutex mutex_;
  std::string text_, names_;
  kjit_context *context_ = nullptr;
  function found_{ nullptr };
};

inline bool is_identifier(const std::string &text)
{
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !is_letter(text[0])) return false;
  for (const char c : text)
    if (!is_letter(c) && !(c >= '0' && c <= '9')) return false;
  return true;
}

} // namespace detail

/* A func that an algorithm calls for elements: a func of a module, or an expression text
 * whose parameters are called a, b, c and so on, such as "a % 10 < b % 10". A text is parsed by the
 * first call that uses the object, so keep the object for further calls. kjit::none stands for the
 * default. */
class callable {
public:
  /* Stands for the default of the algorithm. */
  callable(none_t) : function_(nullptr) {}
  /* Refers to a func of a module. */
  callable(const kjit::function &func) : function_(func), is_function_(true) {}
  /* Refers to an expression text. */
  callable(std::string text) : function_(nullptr), text_(std::move(text)) {}
  /* Refers to an expression text. */
  callable(const char *text) : callable(std::string(text)) {}
  /* Returns the func for a call in the context of `where`. The func of a text has `count`
   * parameters. Returns an empty handle for the default of the algorithm. */
  kjit::function resolve(const detail::place &where, std::size_t count) const
  {
    if (!text_) {
      if (is_function_ && !function_.get()) detail::fail(KJIT_ERROR_MISUSE, "the func is empty");
      return function_;
    }
    if (count > 26)
      detail::fail(KJIT_ERROR_UNSUPPORTED,
                   "an operator that is given as text can have at most 26 parameters");
    const std::lock_guard<std::mutex> guard(cache_->mutex);
    std::shared_ptr<detail::text_function> &known = cache_->of_count[count];
    if (!known)
      known = std::make_shared<detail::text_function>(
        *text_, std::string("abcdefghijklmnopqrstuvwxyz").substr(0, count));
    return known->get(where);
  }
  /* Returns the func that the object was made of, or an empty handle. */
  const kjit::function &given() const noexcept { return function_; }

private:
  struct cache {
    std::mutex mutex;
    std::array<std::shared_ptr<detail::text_function>, 27> of_count;
  };
  kjit::function function_;
  std::optional<std::string> text_;
  bool is_function_ = false;
  std::shared_ptr<cache> cache_ = std::make_shared<cache>();
};

/* An associative operator: a built-in one such as kjit::add, its name, a func of a module with two
 * parameters, or an expression with a and b as text, such as "a + b - a * b". */
class operation {
public:
  /* Refers to a built-in operator. */
  operation(const named_operator &built_in) : name_(built_in.name), function_(none) {}
  /* Refers to a func. `commutes` promises that f(a, b) equals f(b, a). */
  operation(const kjit::function &func, bool commutes = false)
      : function_(func), commutes_(commutes), is_function_(true)
  {
  }
  /* Refers to a built-in operator by its name, or to an expression with a and b as text. */
  operation(const std::string &text, bool commutes = false)
      : name_(detail::is_identifier(text) ? text : std::string()),
        function_(detail::is_identifier(text) ? callable(none) : callable(text)),
        commutes_(commutes), is_function_(!detail::is_identifier(text))
  {
  }
  /* Refers to a built-in operator by its name, or to an expression with a and b as text. */
  operation(const char *text, bool commutes = false) : operation(std::string(text), commutes) {}
  /* Returns the func that the object was made of, or an empty handle. */
  const kjit::function &given() const noexcept { return function_.given(); }
  /* Returns the operator for the C interface. `kept` keeps its func alive. */
  kjit_operator resolve(const detail::place &where, std::vector<kjit::function> &kept) const
  {
    if (!is_function_) return kjit_operator_named(name_.c_str());
    kept.push_back(function_.resolve(where, 2));
    kjit_operator found = kjit_operator_function(kept.back().get());
    found.commutes = commutes_;
    return found;
  }

private:
  std::string name_;
  callable function_;
  bool commutes_ = false, is_function_ = false;
};

/* An operand whose elements a func computes: element (i, j) of an input is func(i, j, last...), and
 * an output func is called as func(i, j, value, last...). Containers among the last arguments must
 * outlive the object. */
class computed {
public:
  /* Creates an operand from a func, the extents of the operand and the last arguments. */
  template <typename... Ts>
  computed(const kjit::function &func, const extents &shape, Ts &&...last)
      : state_(std::make_shared<state>(func, shape))
  {
    (void)std::initializer_list<int>{ (state_->last.add(std::forward<Ts>(last)), 0)... };
    state_->pointers = state_->last.get();
  }
  /* Returns the operand for the C interface. It is valid while the object exists. */
  kjit_operand get() const
  {
    return kjit_operand_function(state_->func.get(), state_->pointers.data(),
                                 state_->pointers.size(), state_->shape.data(),
                                 state_->shape.rank());
  }
  /* Returns the func. */
  const kjit::function &func() const noexcept { return state_->func; }
  /* Returns the first array among the last arguments, or NULL. */
  kjit_array *array() const noexcept
  {
    for (const kjit_arg &each : state_->pointers)
      if (each.kind == KJIT_ARG_ARRAY && each.value.array) return each.value.array;
    return nullptr;
  }

private:
  struct state {
    state(const kjit::function &f, const extents &s) : func(f), shape(s) {}
    kjit::function func;
    extents shape;
    arguments last;
    std::vector<kjit_arg> pointers;
  };
  std::shared_ptr<state> state_;
};

/* An input of an algorithm: an array, a container or view in host memory, a number that stands for
 * all elements, a func with last arguments (kjit::computed), or kjit::none. Use each object for one
 * call only. */
class operand {
public:
  /* Stands for an operand that the call does not have. */
  operand(none_t) {}
  /* Refers to a computed operand. */
  operand(const computed &value) : computed_(value)
  {
    take(value.get(), value.func().keep());
    array_ = value.array();
  }
  /* Refers to an array, a container, a view or a number. */
  template <typename T>
  operand(const T &value) : argument_(std::make_shared<const detail::argument>(value))
  {
    if constexpr (std::is_base_of_v<detail::array_base, T>)
      take(kjit_operand_of(argument_->get()), value.owner()), array_ = value.get();
    else if constexpr (detail::is_handle<T>::value)
      take(kjit_operand_of(argument_->get()), value.keep());
    else take(kjit_operand_of(argument_->get()), nullptr);
  }
  /* Returns the operand for the C interface, or NULL. It is valid while the object
   * exists. */
  const kjit_operand *get() const noexcept { return is_none_ ? nullptr : &operand_; }
  /* Returns the handle that keeps the context of the operand alive. */
  const detail::keeper &owner() const noexcept { return owner_; }
  /* Returns the array, or the first array of a computed operand, or NULL. */
  kjit_array *array() const noexcept { return array_; }

protected:
  struct written {};
  template <typename T>
  operand(T &value, written)
      : argument_(std::make_shared<const detail::argument>(value, detail::argument::writable()))
  {
    take(kjit_operand_of(argument_->get()), nullptr);
    if constexpr (std::is_base_of_v<detail::array_base, std::remove_const_t<T>>)
      owner_ = value.owner(), array_ = value.get();
    if (argument_->is_const())
      detail::fail(KJIT_ERROR_ARGUMENT,
                   "the argument for a result must not be const, because the call writes to it");
  }

private:
  /* Copies of this object share the list, because operand_ points to it. */
  std::shared_ptr<const detail::argument> argument_;
  std::optional<computed> computed_;
  kjit_operand operand_ = {};
  detail::keeper owner_;
  kjit_array *array_ = nullptr;
  bool is_none_ = true;

  void take(const kjit_operand &given, const detail::keeper &owner)
  {
    operand_ = given, owner_ = owner, is_none_ = false;
  }
};

/* A result of an algorithm: an array, a container or view in host memory that is not const, a func
 * that receives the values (kjit::computed), or kjit::none. Use each object for one call only. */
class target : public operand {
public:
  /* Stands for a result that the call does not write. */
  target(none_t) : operand(none) {}
  /* Refers to an output func. */
  target(const computed &value) : operand(value) {}
  /* Refers to an array, a container or a view. */
  template <typename T, std::enable_if_t<!std::is_same_v<std::decay_t<T>, computed> &&
                                           !std::is_same_v<std::decay_t<T>, none_t> &&
                                           !std::is_base_of_v<operand, std::decay_t<T>>,
                                         int> = 0>
  target(T &&value) : operand(value, written())
  {
    using type = std::remove_reference_t<T>;
    static_assert(
      std::is_lvalue_reference_v<T> || detail::is_handle<type>::value ||
        std::is_trivially_copyable_v<type>,
      "the argument for a result must be an array or a container that outlives the call");
  }
};

/* A list of operands: `{ x, y }`, or a container of arrays. Use each list for one call only. */
class operands {
public:
  /* Refers to operands in braces. */
  operands(std::initializer_list<operand> list)
  {
    for (const operand &each : list) add(kept_.emplace_back(each));
  }
  /* Refers to arrays in a container. */
  template <typename R,
            std::enable_if_t<
              std::is_base_of_v<detail::array_base,
                                std::decay_t<decltype(*std::begin(std::declval<const R &>()))>>,
              int> = 0>
  operands(const R &arrays)
  {
    for (const auto &each : arrays) add(kept_.emplace_back(each));
  }
  operands(const operands &) = delete;
  operands &operator=(const operands &) = delete;
  /* Returns the operands for the C interface. */
  const kjit_operand *get() const noexcept { return found_.data(); }
  /* Returns how many operands there are. */
  std::size_t size() const noexcept { return found_.size(); }
  /* Returns the operands one by one. */
  const std::vector<const operand *> &each() const noexcept { return each_; }

private:
  std::deque<operand> kept_;
  std::vector<const operand *> each_;
  std::vector<kjit_operand> found_;

  void add(const operand &one)
  {
    if (!one.get()) detail::fail(KJIT_ERROR_ARGUMENT, "kjit::none cannot be in a list of operands");
    each_.push_back(&one);
    found_.push_back(*one.get());
  }
};

/* A list of results: `{ low, high }`, or a container of arrays. Use each list for one call only. */
class targets {
public:
  /* Refers to results in braces. */
  targets(std::initializer_list<target> list)
  {
    for (const target &each : list) add(kept_.emplace_back(each));
  }
  /* Refers to arrays in a container. */
  template <typename R,
            std::enable_if_t<
              std::is_base_of_v<detail::array_base,
                                std::decay_t<decltype(*std::begin(std::declval<const R &>()))>>,
              int> = 0>
  targets(const R &arrays)
  {
    for (const auto &each : arrays) add(kept_.emplace_back(each));
  }
  targets(const targets &) = delete;
  targets &operator=(const targets &) = delete;
  /* Returns the results for the C interface. */
  const kjit_operand *get() const noexcept { return found_.data(); }
  /* Returns how many results there are. */
  std::size_t size() const noexcept { return found_.size(); }
  /* Returns the results one by one. */
  const std::vector<const operand *> &each() const noexcept { return each_; }

private:
  std::deque<target> kept_;
  std::vector<const operand *> each_;
  std::vector<kjit_operand> found_;

  void add(const target &one)
  {
    if (!one.get()) detail::fail(KJIT_ERROR_ARGUMENT, "kjit::none cannot be in a list of results");
    each_.push_back(&one);
    found_.push_back(*one.get());
  }
};

} // namespace kjit
#endif

/* kjit/cpp/builder.hpp: the builder of modules for kjit.hpp. Include kjit/kjit.hpp, which includes
 * this file. */
#ifndef KJIT_CPP_BUILDER_HPP
#define KJIT_CPP_BUILDER_HPP

#include <kjit/cpp/kernel.hpp>

#include <initializer_list>

namespace kjit {

/* An expression of a builder: a name, a literal, or a combination of other expressions by the
 * operators of C++. `==`, `!`, `&&` and `||` build the operators of the kernel IR; `&&` and `||`
 * evaluate their second operand only if necessary. An expression can be used once, and a name any
 * number of times. */
class expression {
public:
  /* Refers to a node of a builder, which must outlive the expression. */
  expression(kjit_builder *builder, kjit_node node) : builder_(builder), node_(node) {}
  /* Returns the node for the C interface. */
  kjit_node node() const noexcept { return node_; }
  /* Returns the builder of the node, borrowed. */
  kjit_builder *builder() const noexcept { return builder_; }
  /* Returns an element, x(i, j), or a view if an index is a slice. */
  template <typename... I> expression operator()(const I &...indices) const
  {
    const std::array<kjit_node, sizeof...(I)> nodes = { of(builder_, indices)... };
    return { builder_, kjit_build_index(builder_, node_, nodes.data(), nodes.size()) };
  }
  /* Returns an element of an array with one dimension. */
  template <typename I> expression operator[](const I &index) const { return (*this)(index); }
  /* Returns a field such as "shape", or a field of a struct or vector. */
  expression field(const char *name) const
  {
    return { builder_, kjit_build_select_field(builder_, node_, name) };
  }
  /* Returns the node of an expression, or of a literal for a number or bool. An expression of
   * another builder is rejected (MISUSE). */
  template <typename T> static kjit_node of(kjit_builder *builder, const T &value)
  {
    if constexpr (std::is_same_v<T, expression>) {
      if (value.builder_ != builder)
        detail::fail(KJIT_ERROR_MISUSE, "the expression belongs to another builder");
      return value.node_;
    } else if constexpr (std::is_same_v<T, bool>) return kjit_build_bool(builder, value);
    else if constexpr (std::is_integral_v<T>)
      return kjit_build_integer(builder, detail::extent_from(value));
    else {
      static_assert(std::is_floating_point_v<T>, "an expression, a number or a bool");
      return kjit_build_float(builder, static_cast<double>(value));
    }
  }

private:
  kjit_builder *builder_;
  kjit_node node_;
};

namespace detail {
template <typename X, typename Y>
inline constexpr bool has_expression =
  std::is_same_v<X, expression> || std::is_same_v<Y, expression>;
template <typename X, typename Y> kjit_builder *builder_of(const X &x, const Y &y)
{
  if constexpr (std::is_same_v<X, expression>) return (void)y, x.builder();
  else return (void)x, y.builder();
}
template <typename X, typename Y> expression build_binary(kjit_op op, const X &x, const Y &y)
{
  kjit_builder *builder = builder_of(x, y);
  const kjit_node first = expression::of(builder, x), second = expression::of(builder, y);
  return { builder, kjit_build_binary(builder, op, first, second) };
}
} // namespace detail

/* The binary operators of expressions. One operand can be a number. */
#define KJIT_BINARY(symbol, name) \
  template <typename X, typename Y, std::enable_if_t<detail::has_expression<X, Y>, int> = 0> \
  expression operator symbol(const X &x, const Y &y) \
  { \
    return detail::build_binary(KJIT_OP_##name, x, y); \
  }
KJIT_BINARY(+, ADD)
KJIT_BINARY(-, SUB)
KJIT_BINARY(*, MUL)
KJIT_BINARY(/, DIV)
KJIT_BINARY(%, MOD)
KJIT_BINARY(<, LT)
KJIT_BINARY(<=, LE)
KJIT_BINARY(>, GT)
KJIT_BINARY(>=, GE)
KJIT_BINARY(==, EQ)
KJIT_BINARY(!=, NE)
KJIT_BINARY(&&, AND)
KJIT_BINARY(||, OR)
KJIT_BINARY(&, BIT_AND)
KJIT_BINARY(|, BIT_OR)
KJIT_BINARY(^, BIT_XOR)
KJIT_BINARY(<<, SHL)
KJIT_BINARY(>>, SHR)
#undef KJIT_BINARY
/* Returns the negative value. */
inline expression operator-(const expression &x)
{
  return { x.builder(), kjit_build_unary(x.builder(), KJIT_OP_NEG, x.node()) };
}
/* Returns the logical negation. */
inline expression operator!(const expression &x)
{
  return { x.builder(), kjit_build_unary(x.builder(), KJIT_OP_NOT, x.node()) };
}

/* Builds a module with a call for each node. The bodies of kernels, loops and branches are C++
 * functions. Errors are recorded, and finish() throws the first one. */
class builder : public detail::owned<kjit_builder, kjit_destroy_builder> {
public:
  using owned::owned;
  /* Builds a kernel. body() adds its parameters and statements. */
  template <typename F> void kernel(const char *name, F &&body) const
  {
    kjit_build_begin_kernel(get(), name);
    end_after(body);
  }
  /* Builds a func. body() adds its parameters and statements. */
  template <typename F> void function(const char *name, F &&body) const
  {
    kjit_build_begin_function(get(), name, KJIT_ANY);
    end_after(body);
  }
  /* Adds a parameter. KJIT_ANY means that it takes its type from the call. */
  expression parameter(const char *name, kjit_type type = KJIT_ANY) const
  {
    return { get(), kjit_build_parameter(get(), name, type) };
  }
  /* Adds an attribute to the current kernel, func or loop. */
  void attribute(const char *name, std::initializer_list<std::int64_t> values = {}) const
  {
    std::vector<kjit_node> nodes;
    for (const std::int64_t value : values) nodes.push_back(kjit_build_integer(get(), value));
    kjit_build_attribute(get(), name, nodes.data(), nodes.size());
  }
  /* Returns a call of a built-in or func by name, or a thread index such as "threadIdx.x". */
  template <typename... Ts> expression call(const char *name, const Ts &...values) const
  {
    const std::array<kjit_node, sizeof...(Ts)> nodes = { expression::of(get(), values)... };
    return { get(), kjit_build_call(get(), name, nodes.data(), nodes.size()) };
  }
  /* Returns a value converted to a type. */
  template <typename T> expression cast(kjit_type type, const T &value) const
  {
    return { get(), kjit_build_cast(get(), type, expression::of(get(), value)) };
  }
  /* Returns `condition ? x : y`. */
  template <typename X, typename Y>
  expression conditional(const expression &condition, const X &x, const Y &y) const
  {
    const kjit_node first = expression::of(get(), x), second = expression::of(get(), y);
    return { get(),
             kjit_build_conditional(get(), expression::of(get(), condition), first, second) };
  }
  /* Adds `let name = value` and returns the name. */
  template <typename T> expression let(const char *name, const T &value) const
  {
    return { get(), kjit_build_let(get(), name, expression::of(get(), value)) };
  }
  /* Adds `var name = value` and returns the name. */
  template <typename T>
  expression var(const char *name, const T &value, kjit_type type = KJIT_ANY) const
  {
    return { get(), kjit_build_var(get(), name, type, expression::of(get(), value)) };
  }
  /* Adds an assignment to an element or a var. op can be the operator of a compound assignment. */
  template <typename T>
  void assign(const expression &target, const T &value, kjit_op op = KJIT_OP_STORE) const
  {
    kjit_build_assign(get(), expression::of(get(), target), op, expression::of(get(), value));
  }
  /* Adds a call as a statement. */
  void evaluate(const expression &call) const
  {
    kjit_build_evaluate(get(), expression::of(get(), call));
  }
  /* Adds an if. */
  template <typename F> void if_(const expression &condition, F &&then) const
  {
    kjit_build_if(get(), expression::of(get(), condition));
    end_after(then);
  }
  /* Adds an if with an else branch. */
  template <typename F, typename G>
  void if_else(const expression &condition, F &&then, G &&otherwise) const
  {
    kjit_build_if(get(), expression::of(get(), condition));
    then();
    kjit_build_else(get());
    end_after(otherwise);
  }
  /* Adds a while loop. */
  template <typename F> void while_(const expression &condition, F &&body) const
  {
    kjit_build_while(get(), expression::of(get(), condition));
    end_after(body);
  }
  /* Adds a loop over 0 to stop - 1. body(i) adds its statements. */
  template <typename T, typename F> void range(const char *name, const T &stop, F &&body) const
  {
    const kjit_node last = expression::of(get(), stop);
    const expression i(get(), kjit_build_for_range(get(), name, 0, last, 0));
    end_after([&] { body(i); });
  }
  /* Adds a grid_range over one extent. body(i) adds the statements of a thread. */
  template <typename T, typename F> void grid_range(const T &extent, F &&body) const
  {
    const kjit_node last = expression::of(get(), extent);
    kjit_node variable = 0;
    kjit_build_for_grid(get(), &last, 1, &variable);
    const expression i(get(), variable);
    end_after([&] { body(i); });
  }
  /* Adds a return with a value. */
  template <typename T> void return_(const T &value) const
  {
    kjit_build_return(get(), expression::of(get(), value));
  }
  /* Creates the module. Afterwards the builder is empty and can be used again. */
  module finish() const
  {
    return module(detail::create<kjit_module>(kjit_get_builder_context(get()), kjit_finish_builder,
                                              get()),
                  owner());
  }

private:
  template <typename F> void end_after(F &&body) const
  {
    body();
    kjit_build_end(get());
  }
};

} // namespace kjit
#endif

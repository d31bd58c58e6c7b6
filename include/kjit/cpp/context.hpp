/* kjit/cpp/context.hpp: the context for kjit.hpp. Include kjit/kjit.hpp, which includes this
 * file. */
#ifndef KJIT_CPP_CONTEXT_HPP
#define KJIT_CPP_CONTEXT_HPP

#include <kjit/cpp/builder.hpp>
#include <kjit/cpp/kernel.hpp>

namespace kjit {

namespace detail {
inline void end_context(kjit_context *context) { (void)kjit_destroy_context(context); }

/* Adds a diagnostic to the text of an exception. */
inline void add_diagnostic(void *text, const kjit_diagnostic *diagnostic)
{
  const copied_text copy = take_text(kjit_copy_diagnostic_text(diagnostic));
  if (copy) static_cast<std::string *>(text)->append(copy.get());
}

/* Creates a context. After a failure there is no context that holds the diagnostics, so the call is
 * repeated with a callback that collects them. */
inline kjit_context *create_context(const kjit_config &config)
{
  kjit_context *made = nullptr;
  const kjit_status status = kjit_create_context(&config, &made);
  if (status == KJIT_OK) return made;
  std::string text;
  kjit_config again = config;
  again.on_diagnostic = add_diagnostic;
  again.user = &text;
  if (config.size_bytes && kjit_create_context(&again, &made) == KJIT_OK) end_context(made);
  /* A config with an unknown size_bytes may lack the field on_diagnostic. */
  if (text.empty() && status == KJIT_ERROR_MISUSE)
    text = "config.size_bytes is " + std::to_string(config.size_bytes) +
           "; start with kjit::context::config()";
  fail(status, text);
}

/* Parses an expression. The returned func keeps its module alive, and the module keeps `on`
 * alive. */
inline function parse_expression(kjit_context *context, const keeper &on, std::string_view text,
                                 const std::vector<std::string> &names)
{
  std::vector<const char *> pointers;
  for (const std::string &name : names) pointers.push_back(name.c_str());
  kjit_expression_options options = {};
  options.size_bytes = sizeof options;
  options.parameters = pointers.data();
  options.parameter_count = static_cast<std::uint32_t>(pointers.size());
  kjit_module *made = nullptr;
  kjit_function *found = nullptr;
  kjit::check(context,
              kjit_parse_expression(context, &options, text.data(), text.size(), &made, &found));
  return function(found, module(made, on).keep());
}
} // namespace detail

/* A context, which owns all other objects. Copies of the handle refer to the same context. The
 * context ends when the last of these copies and of the handles that were created from it ends. */
class context : public detail::owned<kjit_context, detail::end_context> {
public:
  /* Creates a context with the default configuration. */
  context() : context(config()) {}
  /* Creates a context with a configuration, for example with checks or a cache directory. */
  explicit context(const kjit_config &config) : owned(detail::create_context(config)) {}
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
    return kjit::module(detail::create<kjit_module>(get(), kjit_parse_module, get(), name.c_str(),
                                                    text.data(), text.size()),
                        keep());
  }
  /* Parses a single expression and returns a func with these parameters, for example
   * expression("a * x + b", { "a", "x", "b" }). The text may come from an untrusted user. */
  kjit::function expression(std::string_view text, const std::vector<std::string> &parameters) const
  {
    return detail::parse_expression(get(), keep(), text, parameters);
  }
  /* Creates a builder, which builds a module with a call for each node. */
  kjit::builder build(const std::string &name) const
  {
    return kjit::builder(detail::create<kjit_builder>(get(), kjit_create_builder, get(),
                                                      name.c_str()),
                         keep());
  }
  /* Returns a device by kind and index. */
  kjit::device device(kjit_device_kind kind, std::int32_t ordinal = 0) const
  {
    return kjit::device(detail::create<kjit_device>(get(), kjit_get_device, get(), kind, ordinal),
                        keep());
  }
  /* Returns the CPU device. */
  kjit::device cpu() const { return device(KJIT_DEVICE_CPU); }
  /* Returns a GPU, by default the first. */
  kjit::device cuda(std::int32_t ordinal = 0) const { return device(KJIT_DEVICE_CUDA, ordinal); }
  /* Returns how many devices of a kind there are; 0 GPUs without a driver. */
  std::uint32_t device_count(kjit_device_kind kind) const
  {
    return kjit_get_device_count(get(), kind);
  }
  /* Creates an array from another library's DLPack tensor and takes ownership of it, even if the
   * call fails. `on` is the stream on which the producer made the data ready. */
  any_array take_dlpack(kjit_managed_tensor *tensor, const stream &on = stream()) const
  {
    return any_array(detail::create<kjit_array>(get(), kjit_take_dlpack, get(), tensor, on.get()),
                     keep());
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
};

} // namespace kjit
#endif

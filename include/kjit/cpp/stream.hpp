/* kjit/cpp/stream.hpp: devices, streams, events and graphs for kjit.hpp. Include kjit/kjit.hpp,
 * which includes this file. */
#ifndef KJIT_CPP_STREAM_HPP
#define KJIT_CPP_STREAM_HPP

#include <kjit/cpp/argument.hpp>

#include <chrono>
#include <exception>

namespace kjit {

namespace detail {

/* Shares a C object among copies of the handle. The last copy releases the object, and then the
 * objects that it depends on. */
template <typename T, void (*release)(T *)> class owned {
public:
  owned() = default;
  /* Takes ownership of a C object, which the last copy releases. `on` is another handle's keep()
   * result, which stays alive until then. */
  explicit owned(T *object, const keeper &on = nullptr) : on_(on), object_(object, releaser{ on })
  {
  }
  /* Returns the C object, borrowed, or NULL for an empty handle. */
  T *get() const noexcept { return object_.get(); }
  /* Returns an owner of the object, for handles that depend on it. */
  keeper keep() const noexcept { return object_; }
  /* Returns the owner that the constructor received. */
  keeper owner() const noexcept { return on_; }

private:
  struct releaser {
    keeper on;
    void operator()(T *object) const { release(object); }
  };
  keeper on_;
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

/* Calls a function of the C interface that creates an object, and returns the object. */
template <typename T, typename... Parameters, typename... Arguments>
T *create(kjit_context *context, kjit_status (*function)(Parameters...), Arguments... arguments)
{
  T *made = nullptr;
  kjit::check(context, function(arguments..., &made));
  return made;
}

} // namespace detail

/* A captured graph that can be launched any number of times. */
class executable_graph
    : public detail::owned<kjit_executable_graph, kjit_destroy_executable_graph> {
public:
  using owned::owned;
  /* Queues all work in the graph once, on the device's default stream. */
  void launch() const { launch_on(nullptr); }
  /* Queues all work in the graph once on a stream. */
  template <typename Stream> void launch(const Stream &on) const { launch_on(on.get()); }
  /* Replaces the arguments of all operations by the arguments in another graph with the same
   * operations. */
  template <typename Graph> void update(const Graph &other) const
  {
    kjit::check(context(), kjit_update_graph(get(), other.get()));
  }

private:
  kjit_context *context() const { return kjit_get_executable_graph_context(get()); }
  void launch_on(kjit_stream *on) const { kjit::check(context(), kjit_launch_graph(get(), on)); }
};

/* Launches and copies that a stream has captured. */
class graph : public detail::owned<kjit_graph, kjit_destroy_graph> {
public:
  using owned::owned;
  /* Returns the number of launches, copies, fills and callbacks in the graph. */
  std::size_t size() const { return get() ? kjit_get_graph_size(get()) : 0; }
  /* Creates a graph that can be launched. */
  executable_graph instantiate() const
  {
    return executable_graph(detail::create<kjit_executable_graph>(kjit_get_graph_context(get()),
                                                                  kjit_instantiate_graph, get()),
                            keep());
  }
};

/* A point in a stream, with a time. */
class event : public detail::owned<kjit_event, kjit_destroy_event> {
public:
  using owned::owned;
  /* Records the event on the device's default stream. */
  void record() const { kjit::check(context(), kjit_record_event(get(), nullptr)); }
  /* Records the event on a stream. */
  template <typename Stream> void record(const Stream &on) const
  {
    kjit::check(context(), kjit_record_event(get(), on.get()));
  }
  /* Waits until the work before the event is done. */
  void synchronize() const { kjit::check(context(), kjit_synchronize_event(get())); }
  /* Returns whether the work before the event is done. */
  bool is_done() const
  {
    const kjit_status status = kjit_query_event(get());
    if (status != KJIT_NOT_READY) kjit::check(context(), status);
    return status == KJIT_OK;
  }
  /* Returns the device time from an earlier event to this event, and waits for this event. */
  std::chrono::nanoseconds since(const event &earlier) const
  {
    std::uint64_t time_ns = 0;
    kjit::check(context(), kjit_get_elapsed_time(earlier.get(), get(), &time_ns));
    return std::chrono::nanoseconds(static_cast<std::int64_t>(time_ns));
  }

private:
  kjit_context *context() const { return kjit_get_event_context(get()); }
};

/* A queue of launches and copies on a device. Copies of the handle refer to the same stream. */
class stream : public detail::owned<kjit_stream, kjit_destroy_stream> {
public:
  using owned::owned;
  /* Waits for the work on the stream and throws failures of kernels. */
  void synchronize() const { kjit::check(context(), kjit_synchronize_stream(get())); }
  /* Returns whether no work is queued. */
  bool is_done() const
  {
    const kjit_status status = kjit_query_stream(get());
    if (status != KJIT_NOT_READY) kjit::check(context(), status);
    return status == KJIT_OK;
  }
  /* Makes later work on the stream wait for the last record of an event. The host does not wait. */
  void wait(const event &recorded) const
  {
    if (!get()) kjit::check(nullptr, KJIT_ERROR_MISUSE);
    kjit::check(context(), kjit_wait_event(get(), recorded.get()));
  }
  /* Starts a capture: later work on the stream is recorded in a graph and does not run. */
  void begin_capture() const { kjit::check(context(), kjit_begin_capture(get())); }
  /* Ends the capture and returns the graph. */
  graph end_capture() const
  {
    return graph(detail::create<kjit_graph>(context(), kjit_end_capture, get()), keep());
  }
  /* Captures the work that a function queues on the stream. If the function throws an exception,
   * the capture ends without a graph. */
  template <typename F> graph capture(F &&queue) const
  {
    begin_capture();
    try {
      queue();
    } catch (...) {
      kjit_graph *unfinished = nullptr;
      if (kjit_end_capture(get(), &unfinished) == KJIT_OK) kjit_destroy_graph(unfinished);
      throw;
    }
    return end_capture();
  }

private:
  kjit_context *context() const { return kjit_get_stream_context(get()); }
};

/* A GPU, or the CPU. It belongs to its context. */
class device : public detail::borrowed<kjit_device> {
public:
  using borrowed::borrowed;
  /* Waits for all work on the device and throws failures of kernels. */
  void synchronize() const { kjit::check(context(), kjit_synchronize_device(get())); }
  /* Returns name, limits and memory size of the device. */
  kjit_device_info info() const
  {
    kjit_device_info found = {};
    found.size_bytes = sizeof found;
    kjit::check(context(), kjit_get_device_info(get(), &found));
    return found;
  }
  /* Creates a stream on the device. */
  stream create_stream() const
  {
    return stream(detail::create<kjit_stream>(context(), kjit_create_stream, get()), keep());
  }
  /* Creates an event that streams of the device can record. */
  event create_event() const
  {
    return event(detail::create<kjit_event>(context(), kjit_create_event, get()), keep());
  }

private:
  kjit_context *context() const { return kjit_get_device_context(get()); }
};

} // namespace kjit
#endif

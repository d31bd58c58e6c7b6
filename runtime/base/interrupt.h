/* Interrupts: words that launches of interruptible code look at, one for each stream and each
 * kjit_interrupter, and one for each launch with a time limit and each graph that are under way.
 * docs/architecture/interrupts.md says how they are used. */
#ifndef KJ_INTERRUPT_H
#define KJ_INTERRUPT_H

#include "base/runtime.h"

/* A word of a device, by its number; 0: that of the device's default stream. */
typedef uint32_t kj_interrupt_slot;

/* The layer's part of a device: nothing where the context is not interruptible. */
kjit_status kj_open_interrupts(kjit_device *device, kj_diagnostics *diagnostics);

/* A word of its own; LAUNCH when there is none left. */
kjit_status kj_open_interrupt_slot(kjit_device *device, kj_diagnostics *diagnostics,
                                   kj_interrupt_slot *slot);
/* Nothing is launched with it any more; what was may still be queued. */
void kj_close_interrupt_slot(kjit_device *device, kj_interrupt_slot slot);

/* What a launch passes to its code. own: its word ends with it, by kj_end_interruptible; 0: none.
 */
typedef struct kj_interruptible_launch {
  uint64_t word, number; /* address for the device */
  kj_interrupt_slot own;
} kj_interruptible_launch;
/* listens: the word that it is interrupted by. With a time limit it gets a word of its own, which
 * is raised when the time is over, by a thread that is made for that once. Errors: LAUNCH, MEMORY.
 */
kjit_status kj_begin_interruptible(kjit_device *device, kj_interrupt_slot listens,
                                   uint64_t time_limit_ns, kj_diagnostics *diagnostics,
                                   kj_interruptible_launch *launch);
/* The launch has ended, or was not made. */
void kj_end_interruptible(kjit_device *device, const kj_interruptible_launch *launch);

/* A graph that is launched once more, with a word of its own: gives it a number, and has the device
 * write that behind what is queued on the stream. */
kjit_status kj_number_graph(kjit_device *device, kj_interrupt_slot own, kj_interrupt_slot listens,
                            void *stream, kj_diagnostics *diagnostics);
/* What a kernel in the graph passes. */
kjit_status kj_find_graph_word(kjit_device *device, kj_interrupt_slot own,
                               kj_diagnostics *diagnostics, kj_interruptible_launch *launch);

/* Everything launched so far: by one word and what listens to it; on the device. No lock, nothing
 * but atomic accesses: for signal handlers. */
void kj_interrupt_slot_now(kjit_device *device, kj_interrupt_slot slot);
void kj_interrupt_device(kjit_device *device);

/* The word of a stream, made when it is first asked for. */
kjit_status kj_find_stream_slot(kjit_device *device, kjit_stream *stream,
                                kj_diagnostics *diagnostics, kj_interrupt_slot *slot);

kjit_status kj_create_interrupter(kjit_device *device, kj_diagnostics *diagnostics,
                                  kjit_interrupter **interrupter);
struct kjit_interrupter {
  kj_object object;
  kj_interrupt_slot slot;
};

#endif

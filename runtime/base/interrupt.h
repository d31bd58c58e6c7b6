/* Interrupts. Launches of interruptible code poll words in memory. There is a word for each stream,
 * each kjit_interrupter, each launch with a time limit and each running graph.
 * docs/architecture/interrupts.md explains how they are used. */
#ifndef KJ_INTERRUPT_H
#define KJ_INTERRUPT_H

#include "base/runtime.h"

/* The number of a word of a device. 0 is the word of the device's default stream. */
typedef uint32_t kj_interrupt_slot;

/* Creates this layer's data for a device. Does nothing if the context is not interruptible. */
kjit_status kj_open_interrupts(kjit_device *device, kj_diagnostics *diagnostics);

/* Allocates a word. Returns LAUNCH if all words are in use. */
kjit_status kj_open_interrupt_slot(kjit_device *device, kj_diagnostics *diagnostics,
                                   kj_interrupt_slot *slot);
/* Frees a word that no new launch will use. The word is not reused before the launches that already
 * use it have ended. */
void kj_close_interrupt_slot(kjit_device *device, kj_interrupt_slot slot);

/* The values that a launch passes to its code. `own` is a word that belongs only to this launch, or
 * 0; kj_end_interruptible frees it. */
typedef struct kj_interruptible_launch {
  uint64_t word, number; /* `word` is the word's address on the device */
  kj_interrupt_slot own;
} kj_interruptible_launch;
/* Prepares a launch that the word `listens` interrupts. A launch with a time limit gets its own
 * word. A watchdog thread, which the first such launch starts, sets this word when the time is
 * over. Errors: LAUNCH, MEMORY. */
kjit_status kj_begin_interruptible(kjit_device *device, kj_interrupt_slot listens,
                                   uint64_t time_limit_ns, kj_diagnostics *diagnostics,
                                   kj_interruptible_launch *launch);
/* Ends an interruptible launch, or a launch that kj_begin_interruptible has prepared and that was
 * not started. */
void kj_end_interruptible(kjit_device *device, const kj_interruptible_launch *launch);

/* Assigns a number to a new launch in a graph that has its own word. The device writes the number
 * to the word after the work that is already queued on the stream. */
kjit_status kj_number_graph(kjit_device *device, kj_interrupt_slot own, kj_interrupt_slot listens,
                            void *stream, kj_diagnostics *diagnostics);
/* Returns the values that a launch of a kernel in the graph passes to its code. */
kjit_status kj_find_graph_word(kjit_device *device, kj_interrupt_slot own,
                               kj_diagnostics *diagnostics, kj_interruptible_launch *launch);

/* Interrupt the launches that have begun so far. kj_interrupt_slot_now interrupts the launches that
 * use a word or listen to it, and kj_interrupt_device interrupts all launches on the device. Both
 * use only atomic accesses and no lock, so signal handlers can call them. */
void kj_interrupt_slot_now(kjit_device *device, kj_interrupt_slot slot);
void kj_interrupt_device(kjit_device *device);

/* Returns the word of a stream, which is allocated at the first request. */
kjit_status kj_find_stream_slot(kjit_device *device, kjit_stream *stream,
                                kj_diagnostics *diagnostics, kj_interrupt_slot *slot);

kjit_status kj_create_interrupter(kjit_device *device, kj_diagnostics *diagnostics,
                                  kjit_interrupter **interrupter);
/* The application can destroy an interrupter while prepared or running launches use it, so these
 * launches retain it. The release of the last reference closes its word. */
struct kjit_interrupter {
  kj_object object;
  kj_interrupt_slot slot;
  _Atomic uint32_t references;
};
/* interrupter can be NULL */
kjit_interrupter *kj_retain_interrupter(kjit_interrupter *interrupter);
void kj_release_interrupter(kjit_interrupter *interrupter);

#endif

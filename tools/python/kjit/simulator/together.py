"""Operations in which several threads take part: barriers, and warp shuffles and votes. `ANSWERS`
maps an operation's name to a function. The function receives the waiting threads and returns the
result of the operation for each thread."""

import numpy

from . import arithmetic
from .threads import NOW, WARP, wait

_UINT32 = numpy.uint32


def _truths(group):
    return [bool(t.request[2]) for t in group]


def _same_answer(answer):
    return lambda group: [answer(group)] * len(group)


def _mask(group, chosen):
    return _UINT32(sum(1 << t.lane for t, is_chosen in zip(group, chosen) if is_chosen))


def _shuffled(source_of):
    """Returns the function that answers a shuffle. source_of(lane, operand): the lane from which a
    lane takes its value."""

    def answers(group):
        values = {t.lane: t.request[2][0] for t in group}
        found = []
        for thread in group:
            value, operand = thread.request[2]
            source = source_of(thread.lane, int(operand))
            found.append(values.get(source, value) if 0 <= source < WARP else value)
        return found

    return answers


def _same_values(group):
    return [_mask(group, [t.request[2] == thread.request[2] for t in group]) for thread in group]


def _all_same(group):
    is_same = all(t.request[2] == group[0].request[2] for t in group)
    return [(_mask(group, [is_same] * len(group)), numpy.bool_(is_same))] * len(group)


ANSWERS = {
    "syncthreads": _same_answer(lambda group: None),
    "syncthreads_count": _same_answer(lambda group: numpy.int32(sum(_truths(group)))),
    "syncthreads_and": _same_answer(lambda group: numpy.int32(all(_truths(group)))),
    "syncthreads_or": _same_answer(lambda group: numpy.int32(any(_truths(group)))),
    "syncwarp": _same_answer(lambda group: None),
    "sync": _same_answer(lambda group: None),
    "shfl_sync": _shuffled(lambda lane, operand: operand % WARP),
    "shfl_up_sync": _shuffled(lambda lane, operand: lane - operand),
    "shfl_down_sync": _shuffled(lambda lane, operand: lane + operand),
    "shfl_xor_sync": _shuffled(lambda lane, operand: lane ^ operand),
    "all_sync": _same_answer(lambda group: numpy.bool_(all(_truths(group)))),
    "any_sync": _same_answer(lambda group: numpy.bool_(any(_truths(group)))),
    "eq_sync": _same_answer(lambda group: numpy.bool_(len(set(_truths(group))) == 1)),
    "ballot_sync": _same_answer(lambda group: _mask(group, _truths(group))),
    "match_any_sync": _same_values,
    "match_all_sync": _all_same,
    "activemask": _same_answer(lambda group: _mask(group, [True] * len(group))),
}


def of_block(name):
    if name == "syncthreads":
        return lambda: wait(name)
    return lambda predicate: wait(name, None, predicate)


def of_warp(name):
    """Returns the function that kernels call for a warp operation with a mask and a value."""
    return lambda mask, value: wait(name, _bits(mask, name), value)


def _bits(mask, name):
    """Returns a mask as an integer. Raises ValueError if the calling lane is not in it, because GPUs
    have no result for such a call."""
    bits, thread = int(mask) & 0xFFFFFFFF, NOW.thread
    if thread is not None and not bits >> thread.lane & 1:
        raise ValueError(f"cuda.{name} has the mask {bits:#x}, and lane {thread.lane}, which calls it, is not in the mask")
    return bits


def shuffle(name):
    return lambda mask, value, operand: wait(name, _bits(mask, name), (arithmetic.typed(value), operand))


def syncwarp(mask=0xFFFFFFFF):
    wait("syncwarp", _bits(mask, "syncwarp"))


# Stands for a mask in activemask(), whose result has the lanes that wait in activemask() when no
# other thread in the block can run.
_ANY_LANES = -1


def activemask():
    return wait("activemask", _ANY_LANES)


class Group:
    """The result of cuda.cg.this_grid()."""

    def sync(self):
        wait("sync", "grid")

"""Runs a kernel that was translated to Python: every thread of every block, in turn from barrier to barrier."""
from itertools import product

import values
from language import NAMES, translate
from records import NAMES as OF_RECORDS
from values import Ambiguous


class Unwritten:
    """An element that no thread has written, because the thread that should have written it has failed. Any use of it
    is a TypeError."""

    def refuse(self, *_):
        raise TypeError("an element is read before it is written")
    __bool__ = __eq__ = __ne__ = __float__ = __index__ = refuse


class Failed(Exception):
    """The thread leaves the kernel. The values that it has written stay."""


def checked(divide):
    """A division whose divisor may not be 0; the divisor comes second."""
    def function(a, b, *rest):
        if b == 0:
            raise Failed
        return divide(a, b, *rest)
    return function


# The two checks that the check "division" consists of.
DIVISIONS = {
    "integer-division": {name: checked(NAMES[name]) for name in ("floor_div", "floor_mod", "trunc_div", "trunc_rem", "ceil_div")},
    "float-division": {name: checked(NAMES[name]) for name in ("fdiv", "float_mod", "float_floor_div")},
}
DIVISION_CHECKS = {"division", *DIVISIONS}


def divisions_of(checks):
    return {name: function for half, functions in DIVISIONS.items() if half in checks or "division" in checks for name, function in functions.items()}


def touch(array, index, value, change):
    array[index] = change(array[index], value)
    return array[index]


def poke(array, index, value):
    """The effect of the extern func in random kernels."""
    array[index] = values.wrap(int(array[index]) * 3 + value, "i32")
    return array[index]


def evaluate(kernel, program, arguments, checks=()):
    """Changes the flat lists among the arguments. Returns the set of threads whose results are undetermined and the set
    of threads that fail, or raises Ambiguous."""
    _, lines = translate(program, kernel.environment(), kernel.body, True)
    if kernel.range_names:
        outer = [f"for {', '.join(kernel.range_names)}, in [place]:"]
        lines = ["  " + outer[0], *["  " + line for line in lines]]
    positions = [f"pos_{p}_{d}" for p in ("threadIdx", "blockIdx", "blockDim", "gridDim") for d in "xyz"] + ["pos_thread_rank", "pos_laneid", "pos_warp_rank"]
    header = f"def thread(place, block_size, shared, {', '.join(positions)}, {', '.join(kernel.python_names())}):"
    source = "\n".join([*program.lines, header, *lines])
    scope = {**NAMES, "product": product, "touch": touch, "poke": poke, "UNWRITTEN": Unwritten(), "Failed": Failed, "checks_asserts": "assert" in checks, **OF_RECORDS,
             **divisions_of(checks)}
    exec(compile(source, "kernel", "exec"), scope)
    thread = scope["thread"]
    if kernel.range_names:
        return evaluate_range(kernel, thread, arguments)
    return evaluate_grid(kernel, thread, arguments)


def evaluate_range(kernel, thread, arguments):
    open_, failed = set(), set()
    for number, place in enumerate(product(*map(range, kernel.shape))):
        try:
            thread(place, 1, {}, *[0] * 15, *arguments)
        except Ambiguous:
            open_.add(number)
        except Failed:
            failed.add(number)
    return open_, failed


def evaluate_grid(kernel, thread, arguments):
    open_, failed, number = set(), set(), 0
    gx, gy, gz = kernel.grid
    bx, by, bz = kernel.block
    for block in product(range(gz), range(gy), range(gx)):
        live, shared = [], {}
        for rank, (z, y, x) in enumerate(product(range(bz), range(by), range(bx))):
            live.append((rank, lambda p=(x, y, z, *block[::-1], bx, by, bz, gx, gy, gz, rank, rank % 32, rank // 32): thread(None, bx * by * bz, shared, *p, *arguments)))
        if kernel.is_straight:
            for rank, run in live:
                try:
                    run()
                except Ambiguous:
                    open_.add(number)
                except Failed:
                    failed.add(number)
                number += 1
        else:
            threads, left = {}, set()
            for rank, run in live:
                try:
                    threads[rank] = run()
                except Failed:  # there is no barrier, so the whole thread has run
                    left.add(rank)
            try:
                run_block({rank: t for rank, t in threads.items() if t}, left)
            except (TypeError, DoesNotMeet) as error:
                if not left:
                    raise error
                raise Ambiguous from error  # the other threads need the values that a failed thread did not compute
            if left and kernel.shares_records:
                raise Ambiguous  # they start as zeros here
            failed |= {number + rank for rank in left}
            number += bx * by * bz
    return open_, failed


class DoesNotMeet(Exception):
    """Some threads wait at a barrier that others never reach."""


def run_block(threads, failed):
    waiting = {}
    def step(rank, value):
        try:
            waiting[rank] = threads[rank].send(value)
        except (StopIteration, Failed) as end:
            if isinstance(end, Failed):
                failed.add(rank)
            del threads[rank]
            waiting.pop(rank, None)
    for rank in list(threads):
        step(rank, None)
    while threads:
        moved = False
        for warp in range(0, max(threads) + 1, 32):
            moved |= run_warp(warp, threads, waiting, step)
        if moved:
            continue
        kinds = {waiting[rank][0] for rank in threads}
        if "warp" in kinds or len(kinds) != 1:
            raise DoesNotMeet(f"the generated kernel does not meet: {kinds}")
        kind = kinds.pop()
        given = [bool(waiting[rank][1]) for rank in threads]
        result = {"barrier": None, "syncthreads_count": sum(given), "syncthreads_and": all(given), "syncthreads_or": any(given)}[kind]
        for rank in list(threads):
            step(rank, result)


def run_warp(first, threads, waiting, step):
    """Lanes that wait at a warp operation continue when all lanes in the mask have arrived."""
    sites = {}
    for rank in range(first, first + 32):
        if rank in threads and waiting[rank][0] == "warp":
            request = waiting[rank][1]
            sites.setdefault(request[:3], {})[rank - first] = request[3]
    for (_, mask, kind), lanes in sites.items():
        wanted = {lane for lane in range(32) if mask >> lane & 1}
        if set(lanes) != wanted:
            continue
        results = warp_results(kind, lanes)
        for lane in lanes:
            step(first + lane, results[lane])
        return True
    return False


def warp_results(kind, lanes):
    if kind == "syncwarp":
        return dict.fromkeys(lanes)
    if not kind.startswith("shfl"):
        result = {"all_sync": all(lanes.values()), "any_sync": any(lanes.values()), "eq_sync": len(set(lanes.values())) == 1, "ballot_sync": sum(1 << lane for lane, p in lanes.items() if p)}[kind]
        return dict.fromkeys(lanes, result)
    results = {}
    for lane, (value, b, width) in lanes.items():
        start = lane - lane % width
        if kind == "shfl_sync":
            source = start + b % width
        else:
            source = {"shfl_up_sync": lane - b, "shfl_down_sync": lane + b, "shfl_xor_sync": lane ^ b}[kind]
            if source < start and kind == "shfl_up_sync" or source >= start + width:
                source = lane
        if source not in lanes:
            raise Ambiguous
        results[lane] = lanes[source][0]
    return results

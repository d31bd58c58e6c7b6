"""The contexts of libkjit. Each combination of compile options has a context, which is created at
its first use and again in a forked process."""

import atexit
import functools
import os
import sys
import warnings
from _thread import RLock, start_new_thread  # type: ignore[attr-defined]

from . import _kjit

_PLAIN = {"never": 1, "equal": 2, "always": 3}
_DEBUG = {False: 0, None: 0, "lines": 1, True: 2, "full": 2}

_lock = RLock()
_contexts: dict[tuple[int, int, bool], _kjit.Context] = {}
_plain_code: str | None = None  # the argument of the last set_plain_code
_opened: list[str] = []  # the absolute paths that were passed to open_cache
peers: set[tuple[str, str]] = set()  # (device, peer): kernels on the device may use arrays of the peer
# a kjit.cuda.memory.WorkMemory that allocates GPU memory for contexts; None means that libkjit
# allocates it
device_memory = None


def _renew():
    """In a forked child: abandons the parent's contexts, and replaces the lock, which a thread of
    the parent may hold."""
    global _lock
    _lock = RLock()
    _contexts.clear()


os.register_at_fork(after_in_child=_renew)


def _watch():
    from . import _progress

    _progress.watch()


def is_interactive():
    """Returns whether a person may be watching the output: the program runs in a notebook or on a
    terminal."""
    return "IPython" in sys.modules or sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


# The first call of libkjit starts the thread of _progress.
if is_interactive():
    _kjit.set_progress(True, functools.partial(start_new_thread, _watch, ()))


def check_bits(checks):
    """Returns the bits for a set of checks: a name, names separated by commas, or a list of names."""
    if checks is None or checks is False:
        return 0
    from ._names import CHECKS

    if checks is True:
        return CHECKS["usual"]
    bits = 0
    for name in checks.split(",") if isinstance(checks, str) else checks:
        if name not in CHECKS:
            raise ValueError(f"there is no check {name!r}; the checks are {', '.join(CHECKS)}")
        bits |= CHECKS[name]
    return bits


def debug_level(debug):
    if debug not in _DEBUG:
        raise ValueError(f"debug must be \"lines\" or \"full\", not {debug!r}")
    return _DEBUG[debug]


def _plain_kind(kind, source):
    if kind not in _PLAIN:
        raise ValueError(f"{source}: expected {', '.join(map(repr, _PLAIN))}, not {kind!r}")
    return _PLAIN[kind]


def _initial_plain_code():
    """Returns the value of the C enumeration kjit_plain_code for a new context, from the argument
    of `set_plain_code`, or else the environment variable KJIT_PLAIN_CODE, or else "never"."""
    if _plain_code is not None:
        return _PLAIN[_plain_code]
    return _plain_kind(os.environ.get("KJIT_PLAIN_CODE") or "never", "KJIT_PLAIN_CODE")


def set_plain_code(kind):
    """Selects whether a first call runs plain code while the best code is compiled in the background.
    Plain code compiles in a fifth of the time and can take 100 times as long to run. kind is "never"
    (the default: a call waits for the best code), "equal" (plain code for kernels and functions whose
    results have the same bits as with the best code), or "always" (plain code for all; until the best
    code is ready, floats can differ in the last bits). It applies to all threads. The environment
    variable KJIT_PLAIN_CODE has the initial value."""
    global _plain_code
    number = _plain_kind(kind, "set_plain_code")
    with _lock:
        _plain_code = kind
        for found in [c for c in _contexts.values() if not c.is_forked]:
            found.set_plain_code(number)


def open_cache(path):
    """Opens a file of compiled kernels that the program ships, which `kjit-cache build` makes. Calls
    search the user's disk cache first, then the file, and compile kernels that neither contains. A
    GPU or processor uses the code for its architecture. path: str or os.PathLike. Raises FileError if
    the file does not exist, is damaged or can be written by other users, and UnsupportedError if
    another build of kjit made it; then nothing is opened, and calls compile as before. The file
    must stay where it is. It applies to all threads and to forked processes."""
    path = os.path.abspath(os.fsdecode(path))
    with _lock:
        for found in [c for c in _contexts.values() if not c.is_forked] or [context()]:
            found.open_cache(path)
        if path not in _opened:
            _opened.append(path)


def wait_background():
    """Waits for compilations in the background, such as the best code after plain code. Call it before
    a measurement, and before a short program ends, so that the best code gets into the disk cache."""
    for found in [c for c in list(_contexts.values()) if not c.is_forked]:
        found.wait_background()


def statistics():
    """Returns the statistics, summed over all contexts. Functions of `njit` and kernels with other
    checks have contexts of their own."""
    with _lock:
        all_numbers = [found.statistics() for found in _contexts.values() if not found.is_forked] or [context().statistics()]
    return {name: sum(numbers[name] for numbers in all_numbers) for name in all_numbers[0]}


def has_contexts():
    """Returns whether libkjit has been used in this process."""
    return any(not found.is_forked for found in _contexts.values())


def lock():
    return _lock


def _open_again(made):
    """Opens the files of `open_cache` in a new context. A file that can no longer be opened is ignored
    with a warning, because calls compile without it."""
    from ._errors import Error, KjitWarning

    for path in _opened:
        try:
            made.open_cache(path)
        except Error as error:
            warnings.warn(error.message, KjitWarning, stacklevel=2)


def context(checks=0, debug=0, interruptible=False):
    key = checks, debug, interruptible
    found = _contexts.get(key)
    if found is None or found.is_forked:
        with _lock:
            found = _contexts.get(key)
            if found is None or found.is_forked:
                made = _kjit.Context(
                    *key, device_memory=device_memory, cpu_devices=cpu_devices(), plain_code=_initial_plain_code()
                )
                _open_again(made)
                for device, peer in peers:
                    made.device(device).enable_peer_access(made.device(peer))
                found = _contexts[key] = made
    return found


_MOST_CPU_DEVICES = 64


@functools.cache
def cpu_devices():
    """Returns the number of CPU devices, which the environment variable KJIT_CPU_DEVICES sets. The
    default is 1; other values simulate several GPUs in tests. Raises ValueError for another value
    than 1 to 64."""
    given = os.environ.get("KJIT_CPU_DEVICES") or "1"
    if not given.isdecimal() or not 1 <= int(given) <= _MOST_CPU_DEVICES:
        raise ValueError(f"KJIT_CPU_DEVICES={given}: expected a number from 1 to {_MOST_CPU_DEVICES}")
    return int(given)


def change_peer_access(device, peer, is_on):
    """Enables or disables access of kernels on a device to arrays of another device, in all
    contexts. device, peer: device names. Returns False if the access was already on or off."""
    with _lock:
        if ((device, peer) in peers) == is_on:
            return False
        for found in [c for c in _contexts.values() if not c.is_forked]:
            own, other = found.device(device), found.device(peer)
            own.enable_peer_access(other) if is_on else own.disable_peer_access(other)
        (peers.add if is_on else peers.discard)((device, peer))
        return True


def named_device():
    """Returns the process's default device: "cpu" for the simulator, otherwise the environment
    variable KJIT_DEVICE, or None."""
    return "cpu" if is_simulated() else os.environ.get("KJIT_DEVICE") or None


def device():
    """Returns the default device of a call: the thread's current device, or else `named_device()`.
    None means the arrays' device."""
    return _kjit.get_current_device() or named_device()


def home_of(x):
    """Returns the name of the device of a kjit, PyTorch or CuPy array, or None for an array in host
    memory."""
    place = getattr(getattr(x, "_own", x), "device", None)
    number = getattr(place, "id", None)  # CuPy's devices
    name = str(place) if number is None else f"cuda:{number}"
    return name if ":" in name and name.partition(":")[0] in ("cuda", "cpu") else None


def device_for(arguments):
    """Returns the device of a call with these arguments. If several devices exist, it is the device
    of the first array on a device; otherwise it is `device()`."""
    if not _kjit.has_several_devices():
        return device()
    return next(filter(None, map(home_of, arguments)), None) or device()


def is_simulated():
    """Returns whether kernels of kjit.cuda run in the Python interpreter (the simulator)."""
    return os.environ.get("KJIT_DEVICE") == "python" or os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


@atexit.register
def _leave():
    """At exit: delivers the lines that kernels on a GPU have printed, and stops the compiling
    threads and waits for them."""
    for found in list(_contexts.values()):
        if found.is_forked:
            continue
        found.leave(2.0)

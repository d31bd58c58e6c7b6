"""Devices and contexts with Numba's names.

On a machine without a GPU the CPU is the device. Its compute capability is that of the GPU for
which `inspect_asm` shows PTX. The environment variable KJIT_CPU_DEVICES creates several CPU
devices, on which programs for several GPUs can be tested.

Each thread has a current device, which its arrays, streams, events and launches use. The C
extension stores the current device (kjit._kjit.get_current_device), so kjit's other functions use
the same device.
"""

import contextlib
import functools
import operator
import threading

from .. import _arrays, _kjit, _state
from . import config, driver, errors, memory, streams

MemoryInfo = memory.MemoryInfo

_DEFAULT_CAPABILITY = config.CUDA_DEFAULT_PTX_CC


# Maps the names of device attributes in the CUDA driver, which Numba uses, to kjit's names
# (kjit/device.def).
_ATTRIBUTES = {
    "ASYNC_ENGINE_COUNT": "COPY_ENGINES",
    "CAN_MAP_HOST_MEMORY": "ALLOWS_HOST_MAPPING",
    "CLOCK_RATE": "CLOCK_KHZ",
    "COMPUTE_MODE": "COMPUTE_MODE",
    "CONCURRENT_KERNELS": "ALLOWS_CONCURRENT_KERNELS",
    "CONCURRENT_MANAGED_ACCESS": "HAS_CONCURRENT_MANAGED_ACCESS",
    "COOPERATIVE_LAUNCH": "HAS_COOPERATIVE_LAUNCH",
    "ECC_ENABLED": "HAS_ECC",
    "GLOBAL_MEMORY_BUS_WIDTH": "MEMORY_BUS_BITS",
    "INTEGRATED": "IS_INTEGRATED",
    "L2_CACHE_SIZE": "L2_BYTES",
    "MANAGED_MEMORY": "HAS_MANAGED_MEMORY",
    "MAX_BLOCKS_PER_MULTIPROCESSOR": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "MAX_PERSISTING_L2_CACHE_SIZE": "MAX_PERSISTING_L2_BYTES",
    "MAX_REGISTERS_PER_BLOCK": "MAX_REGISTERS_PER_BLOCK",
    "MAX_REGISTERS_PER_MULTIPROCESSOR": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "MAX_SHARED_MEMORY_PER_BLOCK": "MAX_SHARED_BYTES_PER_BLOCK",
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": "MAX_SHARED_BYTES_PER_BLOCK_OPTIN",
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": "MAX_SHARED_BYTES_PER_MULTIPROCESSOR",
    "MAX_THREADS_PER_MULTI_PROCESSOR": "MAX_THREADS_PER_MULTIPROCESSOR",
    "MEMORY_CLOCK_RATE": "MEMORY_CLOCK_KHZ",
    "MULTIPROCESSOR_COUNT": "MULTIPROCESSORS",
    "PAGEABLE_MEMORY_ACCESS": "HAS_PAGEABLE_ACCESS",
    "PCI_BUS_ID": "PCI_BUS",
    "PCI_DEVICE_ID": "PCI_DEVICE",
    "PCI_DOMAIN_ID": "PCI_DOMAIN",
    "STREAM_PRIORITIES_SUPPORTED": "HAS_STREAM_PRIORITIES",
    "TOTAL_CONSTANT_MEMORY": "MAX_CONSTANT_BYTES",
}


class Device:
    """A GPU, or the CPU if the machine has no GPU. `with device:` makes the device current."""

    def __init__(self, id_):
        self.id, self._own = id_, _open(id_)

    @property
    def name(self):
        return self._own.name.encode()

    @property
    def compute_capability(self):
        target = self._own.target
        digits = target[3:].rstrip("abcdefghijklmnopqrstuvwxyz") if target.startswith("sm_") else ""
        return (int(digits[:-1]), int(digits[-1])) if digits else _DEFAULT_CAPABILITY

    WARP_SIZE = 32
    MAX_THREADS_PER_BLOCK = 1024
    MAX_BLOCK_DIM_X = MAX_BLOCK_DIM_Y = 1024
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X = 2**31 - 1
    MAX_GRID_DIM_Y = MAX_GRID_DIM_Z = 65535
    UNIFIED_ADDRESSING = True
    supports_float16 = supports_bfloat16 = True

    @property
    def uuid(self):
        h = self._own.uuid.hex()
        return f"GPU-{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"

    def __getattr__(self, name):
        own = _ATTRIBUTES.get(name)
        if own is None:
            raise AttributeError(f"the devices of kjit.cuda have no attribute {name!r}")
        return self._own.attribute(own)

    @property
    def COMPUTE_CAPABILITY_MAJOR(self):  # noqa: N802
        return self.compute_capability[0]

    @property
    def COMPUTE_CAPABILITY_MINOR(self):  # noqa: N802
        return self.compute_capability[1]

    def get_primary_context(self):
        return Context(self)

    def reset(self):
        """Waits for all work that is queued on the device."""
        self._own.synchronize()

    def can_access_peer(self, peer_device):
        """Returns Context.can_access_peer(peer_device) for the device's context."""
        return Context(self).can_access_peer(peer_device)

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self):
        return hash(self.id)

    def __enter__(self):
        """Makes the device the current device of the thread until the end of the block."""
        _check_switch(self)
        self._own.__enter__()
        return self

    def __exit__(self, *exc):
        self._own.__exit__(*exc)

    def __repr__(self):
        return f"<CUDA device {self.id} '{self.name.decode()}'>"


def _all():
    """Returns the devices that kjit.cuda uses: all GPUs, or the CPU devices if there is no GPU or the environment
    chooses the CPU."""
    kind = _arrays.device().kind
    return [d for d in _arrays.devices() if d.kind == kind]


def _open(number):
    found = _all()
    if not 0 <= number < len(found):
        raise IndexError(f"there is no device {number}: {_counted(len(found))}")
    return found[number]


def _counted(count):
    return "the only one is 0" if count == 1 else f"the devices are 0 to {count - 1}"


_thread = threading.local()


def _check_switch(device):
    """Raises RuntimeError if the thread runs a function decorated with require_context that was
    called on another device, as in Numba."""
    attached = getattr(_thread, "attached", None)
    if attached is not None and attached != device.id:
        raise RuntimeError(
            f"Cannot switch CUDA-context. The function has the decorator require_context and was called on device {attached}: "
            f"it cannot use device {device.id}"
        )


# Error messages with the CUDA driver's names of the errors, as in Numba.
_PEER_ACCESS_ON = (
    "[704] Call to cuCtxEnablePeerAccess results in CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED: kernels on {} can already access arrays of {}"
)
_PEER_ACCESS_OFF = (
    "[705] Call to cuCtxDisablePeerAccess results in CUDA_ERROR_PEER_ACCESS_NOT_ENABLED: kernels on {} cannot access arrays of {}"
)


class Context:
    """A device's context: its memory, its streams and the access to other devices."""

    def __init__(self, device):
        self.device = device

    def synchronize(self):
        """Waits for all work that is queued on the device."""
        self.device._own.synchronize()

    @property
    def handle(self):
        """The CUcontext as an integer; for a CPU device, the number of the device plus one."""
        own = self.device._own
        return self.device.id + 1 if own.kind == "cpu" else driver.primary_context(self.device.id)

    def get_compute_capability(self):
        return self.device.compute_capability

    compute_capability = property(get_compute_capability)

    def get_memory_info(self):
        """Returns (free, total): the bytes of the device's memory, or of the machine's memory on
        the CPU."""
        manager = self.memory_manager
        found = manager.get_memory_info()
        if not isinstance(found, tuple) or len(found) != 2:
            raise errors.CudaAPIError(f"{type(manager).__name__}.get_memory_info() returned {found!r}, not (free, total)")
        return memory.MemoryInfo(*found)

    def create_stream(self):
        return streams.stream()

    def create_external_stream(self, ptr):
        return streams.external_stream(ptr)

    def get_default_stream(self):
        return streams.default_stream()

    def get_legacy_default_stream(self):
        return streams.legacy_default_stream()

    def get_per_thread_default_stream(self):
        return streams.per_thread_default_stream()

    def create_event(self, timing=True):
        return streams.event(timing)

    # ---- memory ----

    @property
    def memory_manager(self):
        """The manager that allocates the device's memory; see kjit.cuda.memory."""
        return memory.manager_of(self)

    @memory_manager.setter
    def memory_manager(self, manager):
        memory.put_manager(self, manager)

    def memalloc(self, bytesize):
        """Allocates bytesize bytes of device memory and returns a MemoryPointer."""
        with memory.current_context(self):
            return self.memory_manager.memalloc(bytesize)

    def memhostalloc(self, bytesize, mapped=False, portable=False, wc=False):
        """Allocates pinned host memory. With mapped=True kernels can access it in place."""
        return self.memory_manager.memhostalloc(bytesize, mapped, portable, wc)

    def memallocmanaged(self, bytesize, attach_global=True):
        """Allocates managed memory, which the driver moves to the processor that uses it."""
        return self.memory_manager.memallocmanaged(bytesize, attach_global)

    def mempin(self, owner, pointer, size, mapped=False):
        """Pins existing host memory of `size` bytes at `pointer`. owner: the object that keeps the
        memory alive."""
        return self.memory_manager.mempin(owner, pointer, size, mapped)

    def get_ipc_handle(self, memory):
        """Returns a handle of device memory that another process of this machine can open."""
        return self.memory_manager.get_ipc_handle(memory)

    @property
    def deallocations(self):
        """Freed memory that kjit still keeps. Its clear() returns the memory to the driver."""
        return Deallocations(self.device._own)

    def reset(self):
        """Waits for all queued work; then the memory manager releases its memory."""
        self.device.reset()
        self.memory_manager.reset()

    def defer_cleanup(self):
        return self.memory_manager.defer_cleanup()

    def push(self):
        """Makes the device the current device of the thread until pop()."""
        self.device.__enter__()

    def pop(self):
        """Restores the device that was current before push()."""
        self.device.__exit__()

    def __enter__(self):
        self.push()
        return self

    def __exit__(self, *exc):
        self.pop()

    # ---- memory of other devices ----

    def can_access_peer(self, peer_device):
        """Returns whether kernels on this device can access arrays of another device. peer_device:
        the number or the context of the other device."""
        return self.device._own.can_access_peer(_device_of(peer_device)._own)

    def enable_peer_access(self, peer_context, flags=0):
        """Lets kernels on this device access arrays of another device. peer_context: the context or
        the number of the other device. flags must be 0, otherwise ValueError is raised. Raises
        CudaAPIError if the access is already enabled."""
        self._change_access(peer_context, flags, True)

    def disable_peer_access(self, peer_context):
        """Ends the access that enable_peer_access() has enabled. Raises CudaAPIError if the access is
        not enabled."""
        self._change_access(peer_context, 0, False)

    def _change_access(self, peer, flags, is_on):
        if flags:
            raise ValueError(f"flags is reserved and must be 0, not {flags!r}")
        peer = _device_of(peer)
        if peer == self.device:
            raise ValueError(f"device {peer.id} cannot be its own peer; peer access is between two devices")
        names = _name_of(self.device), _name_of(peer)
        if not _state.change_peer_access(*names, is_on):
            text = _PEER_ACCESS_ON if is_on else _PEER_ACCESS_OFF
            raise errors.CudaAPIError(text.format(*names), "KJIT_ERROR_ARGUMENT")

    def __eq__(self, other):
        return isinstance(other, Context) and self.device == other.device

    def __hash__(self):
        return hash(self.device)


class Deallocations:
    """The memory of deleted arrays that kjit keeps for new arrays."""

    def __init__(self, device):
        self._device = device

    def clear(self):
        self._device.trim()


class _Devices:
    """The sequence of all devices; `gpus[i]` is device i."""

    @property
    def lst(self):
        return [Device(i) for i in range(len(_all()))]

    @property
    def current(self):
        """The current device of the thread."""
        return get_current_device()

    def __getitem__(self, index):
        if isinstance(index, slice):
            return self.lst[index]
        count, number = len(self), _number(index)
        if not -count <= number < count:
            raise IndexError(f"there is no device {index}: {_counted(count)}")
        return self.lst[number]

    def __iter__(self):
        return iter(self.lst)

    def __len__(self):
        return len(_all())

    def __repr__(self):
        return repr(self.lst)


gpus = _Devices()


def _name_of(device):
    """Returns kjit's name of a device, such as "cpu:1" or "cuda:0"."""
    return f"{device._own.kind}:{device.id}"


def _number(index):
    try:
        return operator.index(index)
    except TypeError:
        raise TypeError(f"the number of a device must be an integer, not {index!r}") from None


def _device_of(thing):
    """Returns the device that a Device, a Context or a device number stands for."""
    return thing.device if isinstance(thing, Context) else thing if isinstance(thing, Device) else Device(_number(thing))


def device_of(own):
    """Returns the device of a kjit array. Host memory belongs to the current device."""
    kind, _, number = own.device.partition(":")
    return Device(int(number)) if number and kind == _arrays.device().kind else get_current_device()


def get_current_device():
    """Returns the device on which the launches of this thread run. It is device 0 until the thread
    selects another device."""
    return Device(_arrays.device().ordinal)


def context_of(number):
    """Returns the context of a device and does not make the device current."""
    return Context(Device(number))


def current_context(devnum=None):
    """Returns the context of the thread's current device. devnum: the number of a device that first
    becomes the current device."""
    return Context(select_device(get_current_device().id if devnum is None else devnum))


def select_device(device_id):
    """Makes the device with this number the current device of the thread and returns it. Raises
    RuntimeError if the device does not exist."""
    try:
        device = gpus[device_id]
    except IndexError as error:
        raise RuntimeError(f"select_device({device_id}): {error}") from None
    _check_switch(device)
    _kjit.set_current_device(device._own)
    return device


def close():
    """Waits for all work that is queued on the current device, or on every device if the main
    thread calls this function. Afterwards the thread has no current device."""
    for device in gpus if threading.current_thread() is threading.main_thread() else [get_current_device()]:
        device.reset()
    _kjit.set_current_device(None)


# the names of numba.cuda.cudadrv.devices
get_context, reset = current_context, close


def list_devices():
    """Returns the sequence of all devices."""
    return gpus


def detect():
    """Prints all devices and returns True."""
    print(f"Found {len(gpus)} CUDA devices")
    for device in gpus:
        cc = device.compute_capability
        print(
            f"id {device.id}    {device.name}                              [SUPPORTED]\n"
            f"                      Compute Capability: {cc[0]}.{cc[1]}"
        )
    print(f"Summary:\n\t{len(gpus)}/{len(gpus)} devices are supported")
    return True


def is_available():
    """Returns whether kernels can run. Without a GPU they run on the CPU, so only
    NUMBA_DISABLE_CUDA makes this False."""
    return not config.DISABLE_CUDA


def cuda_error():
    """Returns the reason why no device can be used, or None."""
    return config.DISABLED if config.DISABLE_CUDA else None


def is_supported_version():
    """Returns True: kjit needs the driver only, so every version of the CUDA runtime is supported."""
    return True


def is_float16_supported(cc=None):
    """Returns whether kernels can compute with float16: always True."""
    return True


def is_bfloat16_supported(cc=None):
    """Returns whether kernels can compute with bfloat16: True except in the simulator."""
    return not config.ENABLE_CUDASIM


def code_target(cc=None):
    """Returns LLVM's name of the target, such as "sm_90" for the compute capability (9, 0) and
    "sm_90a" for (9, 0, "a"). None means the current device."""
    return "sm_" + "".join(map(str, cc if cc is not None else get_current_device().compute_capability))


@contextlib.contextmanager
def profiling():
    """Returns a context manager for a block that a profiler records. Without a profiler the block
    runs unchanged."""
    profile_start()
    try:
        yield
    finally:
        profile_stop()


def profile_start():
    """Tells a profiler that is attached to the process to start recording."""
    _arrays.device().start_profiler()


def profile_stop():
    """Tells the profiler to stop recording."""
    _arrays.device().stop_profiler()


def require_context(function):
    """Decorates a function that must keep its device: while it runs, its thread cannot choose
    another device."""

    @functools.wraps(function)
    def keeping(*args, **keywords):
        before = getattr(_thread, "attached", None)
        _thread.attached = get_current_device().id if before is None else before
        try:
            return function(*args, **keywords)
        finally:
            _thread.attached = before

    return keeping

"""Types of kjit.cuda, made by tools/python/make-stubs.py."""
from typing import Any

from . import arguments as arguments
from . import arrays as arrays
from . import callbacks as callbacks
from . import cg as cg
from . import compiled as compiled
from . import compiling as compiling
from . import config as config
from . import configurations as configurations
from . import cudadrv as cudadrv
from . import devices as devices
from . import dispatcher as dispatcher
from . import driver as driver
from . import errors as errors
from . import extending as extending
from . import fitting as fitting
from . import fp8 as fp8
from . import host_arrays as host_arrays
from . import jit_options as jit_options
from . import layouts as layouts
from . import linking as linking
from . import memory as memory
from . import random as random
from . import records as records
from . import streams as streams
from . import typed as typed
from . import types as types
from . import usage as usage
from . import words as words
class Archive(LinkableCode):
    default_name: Any
    kind: Any
class BaseCUDAMemoryManager:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def defer_cleanup(self) -> Any: ...
    def get_ipc_handle(self, memory: Any) -> Any: ...
    def get_memory_info(self) -> Any: ...
    def initialize(self) -> Any: ...
    interface_version: Any
    def memalloc(self, size: Any) -> Any: ...
    def memhostalloc(self, size: Any, mapped: Any, portable: Any, wc: Any) -> Any: ...
    def mempin(self, owner: Any, pointer: Any, size: Any, mapped: Any) -> Any: ...
    def reset(self) -> Any: ...
class CUSource(LinkableCode):
    default_name: Any
    kind: Any
class Cubin(LinkableCode):
    default_name: Any
    kind: Any
class CudaSupportError:
    msg: Any
class Fatbin(LinkableCode):
    default_name: Any
    kind: Any
class GetIpcHandleMixin:
    def get_ipc_handle(self, memory: Any) -> Any: ...
HAS_NUMBA: Any
class HostOnlyCUDAMemoryManager(BaseCUDAMemoryManager):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def defer_cleanup(self) -> Any: ...
    def memallocmanaged(self, size: Any, attach_global: Any = ...) -> Any: ...
    def memhostalloc(self, size: Any, mapped: Any = ..., portable: Any = ..., wc: Any = ...) -> Any: ...
    def mempin(self, owner: Any, pointer: Any, size: Any, mapped: Any = ...) -> Any: ...
    def reset(self) -> Any: ...
class In: ...
class InOut: ...
class IpcHandle:
    def __init__(self, base: Any, handle: Any, size: Any) -> None: ...
    def close(self) -> Any: ...
    def open(self, context: Any) -> Any: ...
    def open_array(self, context: Any, shape: Any, dtype: Any, strides: Any = ...) -> Any: ...
    def open_direct(self, context: Any) -> Any: ...
    def open_staged(self, context: Any) -> Any: ...
class LTOIR(LinkableCode):
    default_name: Any
    kind: Any
class LinkableCode:
    def __init__(self, data: Any, name: Any = ..., setup_callback: Any = ..., teardown_callback: Any = ..., nrt: Any = ...) -> None: ...
    data: Any
    default_name: Any
    @staticmethod
    def from_path(path: Any) -> Any: ...
    @classmethod
    def from_path_or_obj(cls, path_or_obj: Any) -> Any: ...
    kind: Any
    name: Any
class ManagedMemory(MappedMemory): ...
class MappedMemory:
    def __init__(self, context: Any, pointer: Any, size: Any, owner: Any = ..., finalizer: Any = ...) -> None: ...
class MemoryInfo(tuple):
    free: Any
    total: Any
class MemoryPointer:
    def __init__(self, context: Any, pointer: Any, size: Any, owner: Any = ..., finalizer: Any = ..., keeps: Any = ...) -> None: ...
    device_ctypes_pointer: Any
    device_pointer: Any
    def free(self) -> Any: ...
    is_managed: Any
    def memset(self, byte: Any, count: Any = ..., stream: Any = ...) -> Any: ...
    def own(self) -> Any: ...
    owner: Any
    refct: Any
    def view(self, start: Any, stop: Any = ...) -> Any: ...
class Object(LinkableCode):
    default_name: Any
    kind: Any
class Out: ...
class PTXSource(LinkableCode):
    default_name: Any
    kind: Any
class PinnedMemory:
    def __init__(self, context: Any, pointer: Any, size: Any, owner: Any = ..., finalizer: Any = ...) -> None: ...
    def own(self) -> Any: ...
class Reduce:
    def __call__(self, arr: Any, size: Any = ..., res: Any = ..., init: Any = ..., stream: Any = ...) -> Any: ...
    def __init__(self, functor: Any) -> None: ...
activemask: Any
all_sync: Any
any_sync: Any
def as_cuda_array(obj: Any, sync: Any = ...) -> Any: ...
atomic: Any
b1: Any
ballot_sync: Any
bfloat16: Any
blockDim: Any
blockIdx: Any
bool_: Any
boolean: Any
brev: Any
byte: Any
c16: Any
c8: Any
cbrt: Any
char: Any
char1: Any
char2: Any
char3: Any
char4: Any
def close() -> Any: ...
clz: Any
def compile(pyfunc: Any, sig: Any, debug: Any = ..., lineinfo: Any = ..., device: Any = ..., fastmath: Any = ..., cc: Any = ..., opt: Any = ..., abi: Any = ..., abi_info: Any = ..., output: Any = ..., forceinline: Any = ..., launch_bounds: Any = ...) -> Any: ...
def compile_all(pyfunc: Any, sig: Any, **options: Any) -> Any: ...
def compile_for_current_device(pyfunc: Any, sig: Any, **options: Any) -> Any: ...
def compile_ptx(pyfunc: Any, sig: Any, debug: Any = ..., lineinfo: Any = ..., device: Any = ..., fastmath: Any = ..., cc: Any = ..., opt: Any = ..., abi: Any = ..., **options: Any) -> Any: ...
def compile_ptx_for_current_device(pyfunc: Any, sig: Any, **options: Any) -> Any: ...
complex128: Any
complex64: Any
const: Any
def cuda_error() -> Any: ...
def current_context(devnum: Any = ...) -> Any: ...
def declare_device(name: Any, sig: Any = ..., link: Any = ..., use_cooperative: Any = ..., abi: Any = ...) -> Any: ...
def default_stream() -> Any: ...
def defer_cleanup() -> Any: ...
def detect() -> Any: ...
def device_array(shape: Any, dtype: Any = ..., strides: Any = ..., order: Any = ..., stream: Any = ...) -> Any: ...
def device_array_like(ary: Any, stream: Any = ...) -> Any: ...
double: Any
double1: Any
double2: Any
double3: Any
double4: Any
eq_sync: Any
def event(timing: Any = ...) -> Any: ...
def event_elapsed_time(evtstart: Any, evtend: Any) -> Any: ...
def external_stream(ptr: Any) -> Any: ...
f2: Any
f4: Any
f8: Any
ffs: Any
float1: Any
float16: Any
float2: Any
float3: Any
float32: Any
float32x1: Any
float32x2: Any
float32x3: Any
float32x4: Any
float4: Any
float64: Any
float64x1: Any
float64x2: Any
float64x3: Any
float64x4: Any
float_: Any
fma: Any
fp16: Any
def from_cuda_array_interface(desc: Any, owner: Any = ..., sync: Any = ...) -> Any: ...
def get_current_device() -> Any: ...
gpus: Any
grid: Any
gridDim: Any
gridsize: Any
def guvectorize(ftylist: Any, signature: Any, **options: Any) -> Any: ...
i1: Any
i2: Any
i4: Any
i8: Any
implementation: Any
int1: Any
int16: Any
int16x1: Any
int16x2: Any
int16x3: Any
int16x4: Any
int2: Any
int3: Any
int32: Any
int32x1: Any
int32x2: Any
int32x3: Any
int32x4: Any
int4: Any
int64: Any
int64x1: Any
int64x2: Any
int64x3: Any
int64x4: Any
int8: Any
int8x1: Any
int8x2: Any
int8x3: Any
int8x4: Any
int_: Any
intc: Any
intp: Any
def is_available() -> Any: ...
def is_bfloat16_supported(cc: Any = ...) -> Any: ...
def is_cuda_array(obj: Any) -> Any: ...
def is_float16_supported(cc: Any = ...) -> Any: ...
def is_supported_version() -> Any: ...
def jit(func_or_sig: Any = ..., device: Any = ..., **options: Any) -> Any: ...
kernels: Any
laneid: Any
lanemask_lt: Any
ldca: Any
ldcg: Any
ldcs: Any
ldcv: Any
ldlu: Any
def legacy_default_stream() -> Any: ...
libdevice: Any
def list_devices() -> Any: ...
literal_unroll: Any
local: Any
long1: Any
long2: Any
long3: Any
long4: Any
long_: Any
longlong: Any
longlong1: Any
longlong2: Any
longlong3: Any
longlong4: Any
def managed_array(shape: Any, dtype: Any = ..., strides: Any = ..., order: Any = ..., stream: Any = ..., attach_global: Any = ...) -> Any: ...
def mapped(*arylist: Any, **kws: Any) -> Any: ...
def mapped_array(shape: Any, dtype: Any = ..., strides: Any = ..., order: Any = ..., stream: Any = ..., portable: Any = ..., wc: Any = ...) -> Any: ...
def mapped_array_like(ary: Any, stream: Any = ..., portable: Any = ..., wc: Any = ...) -> Any: ...
match_all_sync: Any
match_any_sync: Any
nanosleep: Any
none: Any
class open_ipc_array:
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: Any) -> Any: ...
    def __init__(self, handle: Any, shape: Any, dtype: Any, strides: Any = ..., offset: Any = ...) -> None: ...
def per_thread_default_stream() -> Any: ...
def pinned(*arylist: Any) -> Any: ...
def pinned_array(shape: Any, dtype: Any = ..., strides: Any = ..., order: Any = ...) -> Any: ...
def pinned_array_like(ary: Any) -> Any: ...
popc: Any
def profile_start() -> Any: ...
def profile_stop() -> Any: ...
def profiling() -> Any: ...
reduce: Any
def refuse(name: Any) -> Any: ...
def require_context(function: Any) -> Any: ...
def select_device(device_id: Any) -> Any: ...
selp: Any
def set_memory_manager(mm_plugin: Any) -> Any: ...
shared: Any
shfl_down_sync: Any
shfl_sync: Any
shfl_up_sync: Any
shfl_xor_sync: Any
short: Any
short1: Any
short2: Any
short3: Any
short4: Any
size_t: Any
ssize_t: Any
stcg: Any
stcs: Any
def stream(priority: Any = ..., non_blocking: Any = ...) -> Any: ...
stwb: Any
stwt: Any
def synchronize() -> Any: ...
syncthreads: Any
syncthreads_and: Any
syncthreads_count: Any
syncthreads_or: Any
syncwarp: Any
threadIdx: Any
threadfence: Any
threadfence_block: Any
threadfence_system: Any
def to_device(obj: Any, stream: Any = ..., copy: Any = ..., to: Any = ...) -> Any: ...
u1: Any
u2: Any
u4: Any
u8: Any
uchar: Any
uchar1: Any
uchar2: Any
uchar3: Any
uchar4: Any
uint: Any
uint1: Any
uint16: Any
uint16x1: Any
uint16x2: Any
uint16x3: Any
uint16x4: Any
uint2: Any
uint3: Any
uint32: Any
uint32x1: Any
uint32x2: Any
uint32x3: Any
uint32x4: Any
uint4: Any
uint64: Any
uint64x1: Any
uint64x2: Any
uint64x3: Any
uint64x4: Any
uint8: Any
uint8x1: Any
uint8x2: Any
uint8x3: Any
uint8x4: Any
uintc: Any
uintp: Any
ulong: Any
ulong1: Any
ulong2: Any
ulong3: Any
ulong4: Any
ulonglong: Any
ulonglong1: Any
ulonglong2: Any
ulonglong3: Any
ulonglong4: Any
ushort: Any
ushort1: Any
ushort2: Any
ushort3: Any
ushort4: Any
def vectorize(ftylist_or_function: Any = ..., **options: Any) -> Any: ...
void: Any
warpsize: Any

"""assemble_by_driver.py FILE.ptx...: assembles each file with the driver, as the runtime does. If the driver's
assembler crashes, this program crashes."""
import ctypes
import sys

PTX = 1  # CUjitInputType
driver = ctypes.CDLL("libcuda.so.1")


def ask(call, *arguments):
    result = getattr(driver, call)(*arguments)
    if result:
        sys.exit(f"{call} gives {result}")


context, device = ctypes.c_void_p(), ctypes.c_int()
ask("cuInit", 0)
ask("cuDeviceGet", ctypes.byref(device), 0)
ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
ask("cuCtxSetCurrent", context)
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        text = file.read() + b"\0"
    link, cubin, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
    ask("cuLinkCreate_v2", 0, None, None, ctypes.byref(link))
    ask("cuLinkAddData_v2", link, PTX, text, ctypes.c_size_t(len(text)), path.encode(), 0, None, None)
    ask("cuLinkComplete", link, ctypes.byref(cubin), ctypes.byref(size))
    ask("cuLinkDestroy", link)
    print(f"assembled to {size.value} bytes")

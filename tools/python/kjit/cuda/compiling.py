"""PTX of functions, for others to load."""

from . import devices, dispatcher, types


def compile_ptx(
    pyfunc,
    sig,
    debug=None,
    lineinfo=False,
    device=False,
    fastmath=False,
    cc=None,
    opt=None,
    abi="c",
    abi_info=None,
    output="ptx",
    forceinline=False,
    launch_bounds=None,
):
    """(PTX, type of the result) of a kernel for the types of a signature."""
    if device:
        return _compile_device(pyfunc, sig, cc, {"debug": bool(debug), "fastmath": fastmath, "device": True})
    made = dispatcher.Dispatcher(pyfunc, [sig], {"debug": bool(debug), "fastmath": fastmath, "lineinfo": lineinfo})
    signature = made.signatures[0]
    if signature.return_type not in (None, types.void):
        raise TypeError("CUDA kernel must have void return type.")
    return made._inspect("ptx", signature, devices.code_target(cc)), types.void


def _compile_device(pyfunc, sig, cc, options):
    """(PTX of a `.visible .func` with the C ABI, type of the result) of a device function."""
    signature = types.parse(sig)
    function = dispatcher.Dispatcher(pyfunc, [], options)._function
    text = dispatcher._device_text(signature.args)
    ptx = function.code("ptx", text, devices.code_target(cc))
    result = function.find_result(text)
    return ptx, types.void if result == "void" else types.BY_TEXT.get(result)


def compile_ptx_for_current_device(pyfunc, sig, **options):
    """As compile_ptx, for the device that launches use."""
    return compile_ptx(pyfunc, sig, cc=devices.get_current_device().compute_capability, **options)


def compile(pyfunc, sig, output="ptx", **options):
    """As compile_ptx; output is "ptx"."""
    if output != "ptx":
        raise NotImplementedError(f"kjit.cuda.compile(output={output!r}): PTX is what is made")
    return compile_ptx(pyfunc, sig, **options)


def compile_for_current_device(pyfunc, sig, **options):
    """As compile, for the device that launches use."""
    return compile(pyfunc, sig, cc=devices.get_current_device().compute_capability, **options)

"""Compiles functions to PTX that other programs load."""

from . import compiled, devices, dispatcher, types

_OUTPUTS = ("ptx", "ltoir")
_ABIS = ("c", "numba")


def _check(device, abi, output, forceinline):
    if output not in _OUTPUTS:
        raise NotImplementedError(f"Unsupported output type: {output}")
    if abi not in _ABIS:
        raise NotImplementedError(f"Unsupported ABI: {abi}")
    if abi == "c" and not device:
        raise NotImplementedError("The C ABI is not supported for kernels")
    if forceinline and output != "ltoir":
        raise ValueError("Can only designate forced inlining in LTO-IR")
    if output == "ltoir":
        raise NotImplementedError("kjit.cuda.compile(output='ltoir') is not supported, because only NVVM creates LTO-IR: use output='ptx'")


def compile(
    pyfunc,
    sig,
    debug=None,
    lineinfo=False,
    device=True,
    fastmath=False,
    cc=None,
    opt=None,
    abi="c",
    abi_info=None,
    output="ptx",
    forceinline=False,
    launch_bounds=None,
):
    """Compiles a function for the argument types of a signature, and returns (PTX, result type).

    With device=True (default) the PTX has a `.visible .func` with the C ABI. Its name is the
    function's name or abi_info["abi_name"]. With device=False and abi="numba" the PTX has a kernel.
    cc: the compute capability, such as (9, 0); None means Numba's default.
    """
    _check(device, abi, output, forceinline)
    options = {"debug": debug, "lineinfo": lineinfo, "fastmath": fastmath, "opt": opt}
    if launch_bounds is not None:
        options["launch_bounds"] = launch_bounds
    options = {name: value for name, value in options.items() if value is not None}
    pyfunc = getattr(pyfunc, "py_func", pyfunc)
    if device:
        return _compile_device(pyfunc, sig, cc, options | {"device": True}, (abi_info or {}).get("abi_name"))
    made = dispatcher.Dispatcher(pyfunc, [sig], options)
    return made._inspect("ptx", made._signatures[0], devices.code_target(cc)), types.void


def _compile_device(pyfunc, sig, cc, options, symbol):
    signature = types.parse(sig)
    made = dispatcher.Dispatcher(pyfunc, [], options)
    text = compiled.device_text(signature.args)
    made._resolving(lambda: made._function.find_result(text))
    function = made._function
    if signature.return_type is not None and signature.return_type != types.void:
        function.result, function._made = signature.return_type.text, None
    ptx = function.code("ptx", text, devices.code_target(cc), symbol)
    return ptx, types.of_text(function.find_result(text))


def compile_ptx(pyfunc, sig, debug=None, lineinfo=False, device=False, fastmath=False, cc=None, opt=None, abi="numba", **options):
    """Compiles a function like compile(), but as a kernel by default. A device function has the C
    ABI for both values of abi."""
    return compile(pyfunc, sig, debug, lineinfo, device, fastmath, cc, opt, abi, **options)


def compile_for_current_device(pyfunc, sig, **options):
    """Calls compile() for the compute capability of the current device."""
    return compile(pyfunc, sig, cc=devices.get_current_device().compute_capability, **options)


def compile_ptx_for_current_device(pyfunc, sig, **options):
    """Calls compile_ptx() for the compute capability of the current device."""
    return compile_ptx(pyfunc, sig, cc=devices.get_current_device().compute_capability, **options)


def compile_all(pyfunc, sig, **options):
    """Calls compile() and returns ([PTX], result type), as Numba does. The list always has one
    item."""
    code, result = compile(pyfunc, sig, **options)
    return [code], result

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
        raise NotImplementedError(
            "kjit.cuda.compile_ptx(device=True): kjit makes kernels only; their functions are a part of them"
        )
    made = dispatcher.Dispatcher(pyfunc, [sig], {"debug": bool(debug), "fastmath": fastmath, "lineinfo": lineinfo})
    signature = made.signatures[0]
    if signature.return_type not in (None, types.void):
        raise TypeError("CUDA kernel must have void return type.")
    return made._inspect("ptx", signature, devices.code_target(cc)), types.void


def compile_ptx_for_current_device(pyfunc, sig, **options):
    """As compile_ptx, for the device that launches use."""
    return compile_ptx(pyfunc, sig, cc=devices.get_current_device().compute_capability, **options)


def compile(pyfunc, sig, output="ptx", **options):
    """As compile_ptx; output is "ptx"."""
    if output != "ptx":
        raise NotImplementedError(f"kjit.cuda.compile(output={output!r}): PTX is what is made")
    return compile_ptx(pyfunc, sig, **options)


def compile_for_current_device(pyfunc, sig, **options):
    return compile(pyfunc, sig, cc=devices.get_current_device().compute_capability, **options)

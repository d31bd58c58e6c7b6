"""Reads the options of `cuda.jit` and translates them to kjit's options."""

import warnings

from . import config, errors

# Options without an effect in kjit: kjit always behaves as they request, or they have no meaning in kjit.
_WITHOUT_EFFECT = {
    "cache",
    "lto",
    "nopython",
    "cooperative",
    "shared_memory_carveout",
}

_KNOWN = _WITHOUT_EFFECT | {
    "device",
    "debug",
    "opt",
    "lineinfo",
    "fastmath",
    "inline",
    "forceinline",
    "max_registers",
    "launch_bounds",
    "boundscheck",
    "link",
    "extensions",
}

_CARVEOUTS = ("default", "maxl1", "maxshared")


def _check_values(given):
    carveout, bounds = given.get("shared_memory_carveout"), given.get("launch_bounds")
    if isinstance(carveout, str) and carveout.lower() not in _CARVEOUTS:
        raise ValueError(f"Invalid carveout value {carveout!r}: MaxL1, MaxShared, default, or -1 to 100")
    if isinstance(carveout, int) and not -1 <= carveout <= 100:
        raise ValueError(f"Carveout value must be between -1 and 100, not {carveout}")
    if isinstance(bounds, (tuple, list)) and len(bounds) > 3:
        raise ValueError(
            f"Got {len(bounds)} launch bounds: {tuple(bounds)}. At most three are supported: threads per block, "
            "blocks per multiprocessor and blocks per cluster"
        )


def is_debug(given):
    return bool(config.CUDA_DEBUGINFO_DEFAULT if given.get("debug") is None else given["debug"])


def _is_optimized(given):
    return bool(config.OPT if given.get("opt") is None else given["opt"])


def warn_of_options(given):
    if not is_debug(given):
        return
    if _is_optimized(given):
        text = (
            "debug=True with opt=True is not supported by CUDA's debuggers, which find few variables in optimized code: "
            "opt=False keeps them"
        )
        warnings.warn(text, errors.NumbaInvalidConfigWarning, stacklevel=3)
    if given.get("lineinfo"):
        text = "debug and lineinfo are mutually exclusive. Use debug to get full debug info (this disables some optimizations)"
        warnings.warn(text, errors.NumbaInvalidConfigWarning, stacklevel=3)


def checks_bounds(given):
    """Returns whether kernels check their indices: True or False if the environment or the option
    boundscheck says so, else None. None means checks on the CPU only."""
    return given.get("boundscheck") if config.BOUNDSCHECK is None else bool(config.BOUNDSCHECK)


def read(given):
    if given.get("link") and config.ENABLE_CUDASIM:
        raise NotImplementedError("Cannot link PTX in the simulator")
    if given.get("link") and given.get("device"):
        raise ValueError("link keyword invalid for device function")
    unknown = set(given) - _KNOWN
    if unknown:
        raise ValueError(f"Unrecognized options: {min(unknown)!r}. Known options are {sorted(_KNOWN)}")
    _check_values(given)
    options = {"numba": True}
    if is_debug(given):
        # With fastmath a division by zero gives the result of IEEE 754, so divisions are not
        # checked.
        checks = ["bounds", "assert"] if given.get("fastmath") else "usual"
        options |= {"checks": checks, "debug": "lines" if _is_optimized(given) else "full"}
    else:
        if checks_bounds(given):
            options["checks"] = "bounds"
        if given.get("lineinfo"):
            options["debug"] = "lines"
        if not _is_optimized(given):
            options["debug"] = "full"
    if not _is_optimized(given) and not given.get("fastmath"):
        options["strict"] = True
    if given.get("fastmath"):
        options["fastmath"] = True
    if given.get("max_registers"):
        options["max_registers"] = int(given["max_registers"])
    if given.get("launch_bounds") is not None:
        bounds = given["launch_bounds"]
        options["launch_bounds"] = bounds if isinstance(bounds, int) else tuple(bounds)
    if given.get("inline") in ("always", True) or given.get("forceinline"):
        options["inline"] = True
    elif given.get("inline") in ("never", False):
        options["inline"] = False
    return options

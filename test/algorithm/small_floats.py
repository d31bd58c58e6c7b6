"""8-bit floats, decoded by their definition: sign, exponent, mantissa."""
import numpy as np

FORMATS = {"e4m3": (3, 7), "e5m2": (2, 15)}  # mantissa bits, exponent bias


def decode(name):
    """Returns the numbers for all 256 bytes as f8. e5m2 has infinities, and both formats have NaN."""
    bits, bias = FORMATS[name]
    byte = np.arange(256)
    exponent, fraction = (byte & 127) >> bits, (byte & ((1 << bits) - 1)) / 2.0**bits
    size = np.where(exponent == 0, fraction * 2.0**(1 - bias), (1 + fraction) * 2.0**(exponent - bias))
    if name == "e4m3":
        size[(byte & 127) == 127] = np.nan
    else:
        size[(byte & 127) == 124], size[(byte & 127) > 124] = np.inf, np.nan
    return np.where(byte & 128, -size, size)


def pick(rng, name, shape, most, whole=False):
    """Returns random bytes that represent numbers up to `most`, integers only if `whole` is set, and the numbers themselves."""
    table = decode(name)
    fits = np.abs(table) <= most
    if whole:
        fits &= table == np.rint(table)
    taken = rng.choice(np.flatnonzero(fits), shape).astype("u1")
    return taken, table[taken]


def encode(name, x):
    """Returns the bytes of the nearest numbers, ties to even. Numbers beyond the largest finite number saturate."""
    table = decode(name)[:128]
    table = table[np.isfinite(table)]
    above = np.clip(np.searchsorted(table, np.abs(x)), 1, len(table) - 1)
    low, high = np.abs(x) - table[above - 1], table[above] - np.abs(x)
    byte = np.where((high < low) | ((high == low) & (above % 2 == 0)), above, above - 1)
    return (byte | np.where(x < 0, 128, 0)).astype("u1")

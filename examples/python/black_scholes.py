"""Prices of European options by the Black-Scholes formula, compared with the same formula in NumPy."""
import math

import kjit
import numpy as np

RATE, VOLATILITY = 0.02, 0.30


@kjit.func
def normal(d):
    return 0.5 * kjit.erfc(-d / math.sqrt(2.0))


@kjit.jit
def black_scholes(call, put, price, strike, years):
    for i in kjit.grid_range(len(call)):
        s, x, t = price[i], strike[i], years[i]
        root = math.sqrt(t)
        d1 = (math.log(s / x) + (RATE + 0.5 * VOLATILITY**2) * t) / (VOLATILITY * root)
        d2 = d1 - VOLATILITY * root
        discounted = x * math.exp(-RATE * t)
        call[i] = s * normal(d1) - discounted * normal(d2)
        put[i] = discounted * normal(-d2) - s * normal(-d1)


def expected(s, x, t):
    cdf = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
    d1 = (np.log(s / x) + (RATE + 0.5 * VOLATILITY**2) * t) / (VOLATILITY * np.sqrt(t))
    d2 = d1 - VOLATILITY * np.sqrt(t)
    call = s * cdf(d1) - x * np.exp(-RATE * t) * cdf(d2)
    return call, call - s + x * np.exp(-RATE * t)


random = np.random.default_rng()
price, strike, years = random.uniform(5, 30, 20_000), random.uniform(1, 100, 20_000), random.uniform(0.25, 10, 20_000)
call, put = np.empty_like(price), np.empty_like(price)
black_scholes(call, put, price, strike, years)
for got, wanted in zip((call, put), expected(price, strike, years)):
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)
print(f"{len(call)} options: the first call is worth {call[0]:.4f}, the first put {put[0]:.4f}")

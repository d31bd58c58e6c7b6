"""Option prices by the Black-Scholes formula with a polynomial for the normal distribution: a
numba.cuda program with another import."""
import math

from kjit import cuda

import numpy as np

RATE, VOLATILITY = 0.02, 0.30


@cuda.jit(device=True)
def cnd(d):
    """The polynomial approximation 26.2.17 of Abramowitz and Stegun, with an error below 7.5e-8."""
    k = 1.0 / (1.0 + 0.2316419 * math.fabs(d))
    tail = 0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429)))
    value = math.exp(-0.5 * d * d) / math.sqrt(2 * math.pi) * k * tail
    if d > 0:
        value = 1.0 - value
    return value


@cuda.jit
def black_scholes(call, put, price, strike, years, rate, volatility):
    i = cuda.grid(1)
    if i >= price.shape[0]:
        return
    root = math.sqrt(years[i])
    d1 = (math.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / (volatility * root)
    d2 = d1 - volatility * root
    discounted = strike[i] * math.exp(-rate * years[i])
    call[i] = price[i] * cnd(d1) - discounted * cnd(d2)
    put[i] = discounted * (1.0 - cnd(d2)) - price[i] * (1.0 - cnd(d1))


random = np.random.default_rng()
n = 10_000
price, strike, years = random.uniform(5, 30, n), random.uniform(1, 100, n), random.uniform(0.25, 10, n)
call, put = cuda.device_array(n), cuda.device_array(n)
black_scholes[(n + 255) // 256, 256](call, put, cuda.to_device(price), cuda.to_device(strike), cuda.to_device(years), RATE, VOLATILITY)

exact = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
d1 = (np.log(price / strike) + (RATE + 0.5 * VOLATILITY**2) * years) / (VOLATILITY * np.sqrt(years))
expected = price * exact(d1) - strike * np.exp(-RATE * years) * exact(d1 - VOLATILITY * np.sqrt(years))
np.testing.assert_allclose(call.copy_to_host(), expected, atol=2e-5)
np.testing.assert_allclose(put.copy_to_host(), expected - price + strike * np.exp(-RATE * years), atol=2e-5)
print(f"{n} options: the calls are worth {expected.mean():.4f} on average, to 2e-5")

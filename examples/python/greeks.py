"""The greeks of European call options: derivatives of the Black-Scholes formula, compared with
their formulas."""

import math

import kjit
import numpy as np


@kjit.func
def call(price, strike, years, rate, volatility):
    deviation = volatility * kjit.sqrt(years)
    d1 = (kjit.log(price / strike) + (rate + 0.5 * volatility**2) * years) / deviation
    return price * kjit.normcdf(d1) - strike * kjit.exp(-rate * years) * kjit.normcdf(d1 - deviation)


def by_hand(s, x, t, r, v):
    cdf = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
    d1 = (np.log(s / x) + (r + 0.5 * v * v) * t) / (v * np.sqrt(t))
    d2, density = d1 - v * np.sqrt(t), np.exp(-0.5 * d1 * d1) / math.sqrt(2 * math.pi)
    discounted = x * np.exp(-r * t)
    return {
        "value": s * cdf(d1) - discounted * cdf(d2),
        "delta": cdf(d1),
        "theta": s * density * v / (2 * np.sqrt(t)) + r * discounted * cdf(d2),
        "rho": discounted * t * cdf(d2),
        "vega": s * density * np.sqrt(t),
        "gamma": density / (s * v * np.sqrt(t)),
    }


random = np.random.default_rng()
n = 5000
options = [random.uniform(*bounds, n) for bounds in ((5, 30), (5, 30), (0.25, 5), (0.0, 0.05), (0.1, 0.5))]

# One pass computes the value and its derivatives with respect to price, time, rate and volatility. A second pass computes the
# second derivative with respect to the price.
names = ("value", "delta", "theta", "rho", "vega")
greeks = dict(zip(names, kjit.map(kjit.value_and_grad(call, 0, 2, 3, 4), *options)))
greeks["gamma"] = kjit.map(kjit.hvp(call, 0), *options, 1.0)

for name, expected in by_hand(*options).items():
    np.testing.assert_allclose(greeks[name], expected, rtol=1e-9, atol=1e-9, err_msg=name)
assert kjit.gradcheck(call, *(float(x[0]) for x in options), rtol=1e-7)
print(f"{n} options, of the first: " + ", ".join(f"{name} {values[0]:.4f}" for name, values in greeks.items()))

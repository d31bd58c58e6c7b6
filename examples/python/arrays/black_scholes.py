"""Prices of options for all pairs of strike prices and maturities, by the Black-Scholes formula."""


def normal_distribution(xp, x):
    """The polynomial approximation 26.2.17 of Abramowitz and Stegun."""
    k = 1 / (1 + 0.2316419 * abs(x))
    polynomial = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.3989422804014327 * xp.exp(-0.5 * x * x) * polynomial
    return xp.where(x > 0, 1 - tail, tail)


def run(xp, spot=100.0, rate=0.03, volatility=0.25):
    strikes = xp.linspace(50, 150, 101)[:, None]
    years = xp.linspace(0.1, 3, 59)[None, :]
    deviation = volatility * xp.sqrt(years)
    d1 = (xp.log(spot / strikes) + (rate + 0.5 * volatility**2) * years) / deviation
    discounted = strikes * xp.exp(-rate * years)
    calls = spot * normal_distribution(xp, d1) - discounted * normal_distribution(xp, d1 - deviation)
    return calls, calls - spot + discounted, xp.mean(calls)


if __name__ == "__main__":
    from both import compare

    compare(run, "Black-Scholes: the mean price is {:.3f}")

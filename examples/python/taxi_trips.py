"""Fares of taxi trips with missing values: a function of a row, aggregations of groups, and the
longest trips. With pandas the table is a DataFrame, otherwise a dictionary of NumPy masked arrays.
The results are compared with NumPy."""

import kjit
import numpy as np

try:
    import pandas
except ImportError:
    pandas = None

COUNT = 200_000
BASE, PER_MILE, PER_MINUTE, AIRPORT = 3.0, 1.75, 0.5, 5.0

rng = np.random.default_rng(2026)
distance = np.round(rng.gamma(2.0, 1.5, COUNT), 2)
minutes = np.round(distance * rng.uniform(2, 6, COUNT)).astype(np.int32)
zone = rng.integers(0, 265, COUNT).astype(np.int16)
place = np.array(["city", "airport"])[(zone % 50 == 0).astype(int)]
tip = np.round(rng.exponential(2.0, COUNT), 2)
has_minutes, has_tip = rng.random(COUNT) > 0.03, rng.random(COUNT) > 0.4


def fare(row, base):
    """Returns the fare in dollars. A trip without a duration has no fare."""
    if row.minutes is kjit.NA:
        return kjit.NA
    price = base + PER_MILE * row.distance + PER_MINUTE * row.minutes
    return price + AIRPORT if row.place == "airport" else price


def percentage(row):
    """Returns the tip as a percentage of the fare; it is missing if the tip or the fare is."""
    return 100 * row.tip / fare(row, BASE)


def spread(tips):
    return tips.max() - tips.min()


masked_minutes, masked_tip = np.ma.array(minutes, mask=~has_minutes), np.ma.array(tip, mask=~has_tip)
trips = {"zone": zone, "place": place, "distance": distance, "minutes": masked_minutes, "tip": masked_tip}
if pandas is not None:
    nullable = {"minutes": pandas.arrays.IntegerArray(minutes, ~has_minutes), "tip": pandas.arrays.FloatingArray(tip, ~has_tip)}
    trips = pandas.DataFrame({**trips, **nullable})

table = kjit.table(trips)
priced = table.assign(fare=lambda row: fare(row, BASE), percentage=percentage)
by_zone = kjit.table(priced).groupby("zone").agg(
    trips=("distance", "count"), income=("fare", "sum"), percentage=("percentage", "mean"), spread=("tip", spread)
)
longest = table.top_k(3, "distance")

want = np.ma.array(BASE + PER_MILE * distance + PER_MINUTE * minutes + AIRPORT * (place == "airport"), mask=~has_minutes)
got = np.ma.array(priced["fare"].to_numpy(float, na_value=0), mask=priced["fare"].isna()) if pandas is not None else priced["fare"]
assert np.array_equal(got.mask, want.mask) and np.ma.allclose(got, want)
income = np.bincount(zone, want.filled(0))
assert np.allclose(np.asarray(by_zone["income"], float), income[np.unique(zone)])
assert np.allclose(np.asarray(longest["distance"]), np.sort(distance)[:-4:-1])
tips = [tip[(zone == z) & has_tip] for z in np.unique(zone)]
assert np.allclose(np.asarray(by_zone["spread"], float), [t.max() - t.min() for t in tips])
print(f"{COUNT} trips in {len(income)} zones: {income.sum():.2f} dollars, {int((~has_minutes).sum())} trips without a fare")

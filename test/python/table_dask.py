# RUN: env KJIT_DEVICE=cpu %kjit-python %s
"""Functions of rows over Dask's data frames on two processes have the results of pandas, and each worker gets a function once."""

import os
import pickle
import sys
import tempfile

import kjit
import numpy as np

if __name__ == "__main__":
    import seeds  # workers cannot import these modules

sys.path = [
    path for path in sys.path if path != os.path.dirname(os.path.abspath(__file__))
]  # Dask imports a package called `sparse`
try:
    import dask.dataframe
    import pandas
    import pyarrow  # noqa: F401
    from dask.distributed import Client, LocalCluster
except ImportError as error:
    print("skipped:", error)
    sys.exit()

LIMIT = 3.0


def helper(x):
    return x * 2 if x > LIMIT else x + 1


def value(row, base):
    """A function in the program's file, which workers do not import."""
    if row.n is kjit.NA:
        return kjit.NA
    return helper(row.x) + base * row.n


def plain(row, base):
    return pandas.NA if row.n is pandas.NA else helper(row.x) + base * row.n


def received():
    from kjit.dask import _received

    return len(_received)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else seeds.seed
    print("seed", seed)
    rng = np.random.default_rng(seed)
    count = 400
    x = rng.normal(3, 2, count)
    frame = pandas.DataFrame(
        {
            "k": rng.integers(0, 5, count),
            "s": np.array(["a", "b", "c"])[rng.integers(0, 3, count)],
            "x": x,
            "y": np.where(rng.random(count) < 0.1, np.nan, x),
            "n": pandas.arrays.IntegerArray(rng.integers(-9, 9, count), rng.random(count) < 0.2),
        }
    )
    ddf = dask.dataframe.from_pandas(frame, npartitions=7)
    with tempfile.TemporaryDirectory() as folder:
        with LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder
        ) as cluster:
            with Client(cluster) as client:
                made = kjit.dask.apply(ddf, value, args=(0.5,))
                got = made.compute()
                want = frame.apply(plain, axis=1, args=(0.5,))
                assert made.dtype == got.dtype and got.index.equals(frame.index), (made.dtype, got.dtype)
                assert got.isna().tolist() == want.isna().tolist(), seed
                assert np.allclose(got.dropna().astype(float), want.dropna().astype(float), equal_nan=True), seed
                kjit.dask.apply(ddf, value, args=(1.5,)).compute()
                assert set(client.run(received).values()) <= {0, 1}, client.run(received)
                assert max(client.run(received).values()) == 1

                hows = ("sum", "mean", "min", "max", "count", "var", "std")
                got = kjit.dask.agg(ddf, "k", **{how: ("y", how) for how in hows})
                pandas.testing.assert_frame_equal(got, frame.groupby("k")["y"].agg(list(hows)), check_dtype=False)
                got = kjit.dask.agg(ddf, ["s", "k"], total=("n", "sum"))
                want = frame.groupby(["s", "k"])["n"].sum()
                assert got["total"].tolist() == want.tolist() and got.index.tolist() == want.index.tolist(), seed
                got = kjit.dask.agg(ddf, mean=("y", "mean"), n=("n", "count"), own=(lambda row: row.x * LIMIT, "max"))
                assert np.isclose(got["mean"], frame["y"].mean()) and got["n"] == frame["n"].count()
                assert np.isclose(got["own"], frame["x"].max() * LIMIT), got
    shipped = pickle.dumps(kjit.dask.Shipped(value))
    assert pickle.loads(shipped) is pickle.loads(shipped) and pickle.loads(shipped).function is not value
    for call, kind, text in (
        (lambda: kjit.dask.apply(frame, value), TypeError, "takes a Dask DataFrame, not DataFrame"),
        (lambda: kjit.dask.agg(ddf, "none", a=("x", "sum")), KeyError, "no column 'none'"),
        (lambda: kjit.dask.agg(ddf, a=("x", "median")), ValueError, "needs all values of a group at once"),
        (lambda: kjit.dask.agg(ddf), TypeError, "takes keywords"),
        (lambda: kjit.dask.apply(ddf, lambda row: row.none), kjit.SourceError, "no column 'none'"),
    ):
        try:
            call()
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"not refused: {text}")


if __name__ == "__main__":
    main()

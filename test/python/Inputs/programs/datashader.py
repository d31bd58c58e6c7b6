"""Plots: the package's own tests."""
TESTS = ["datashader/tests/" + name for name in ("test_pandas.py", "test_glyphs.py", "test_antialias.py", "test_composite.py", "test_raster.py",
                                                 "test_transfer_functions.py", "test_quadmesh.py", "test_bundling.py", "test_layout.py")]
OPTIONS = ["-k", "not dask and not cudf and not cupy"]

# RUN: env KJIT_DEVICE=cpu %kjit-python %s %srcdir
"""Runs the programs on the pages below and in README.md, one after the other, with a common set of names."""
import os
import re
import sys
import tempfile

import numpy as np

source = sys.argv[1]
for page in ("docs/python.md", "docs/numba.md", "docs/from/numpy.md", "docs/derivatives.md", "docs/tables.md", "docs/howto/optix.md", "docs/howto/profilers.md", "README.md"):
    text = open(os.path.join(source, page)).read()
    text = re.sub(r"<!-- (?:run by: test/python/(?:array_gradients|numba_rows|torch_functions).py|not run: [^\n]*) -->\n```.*?```", "", text, flags=re.DOTALL)
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert programs
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write("\n".join(programs))
        file.flush()
        names = {"__name__": "documented"}
        exec(compile("\n".join(programs), file.name, "exec"), names)
    if page == "README.md":
        assert names["r"].tolist() == [12, 24, 36]
        assert names["growth"] == 2.75
    elif page == "docs/numba.md":
        np.testing.assert_allclose(names["r"].copy_to_host(), 3.5 * np.arange(1000.0))
    elif page == "docs/tables.md":
        assert names["fares"].tolist() == [14.1, 31.625, None, 61.5] and names["long"]["minutes"].tolist() == [31, 44]
        assert names["trips_by_place"]["number"].tolist() == [2, 1] and names["trips_by_place"]["place"].tolist() == ["airport", "city"]
    elif page == "docs/derivatives.md":
        assert names["kjit"].gradcheck(names["wave"], 0.5, 2.0)
    elif page == "docs/howto/optix.md":
        assert ".entry __raygen__depth()" in names["text"]
    elif page == "docs/from/numpy.md":
        x = names["x"].to_host()
        np.testing.assert_allclose(names["y"].to_host(), np.minimum(np.sin(x) ** 2 + 0.5 * x, 1), rtol=1e-5)
    elif page == "docs/python.md":
        np.testing.assert_allclose(names["r"], names["x"] + names["y"], rtol=1e-5)

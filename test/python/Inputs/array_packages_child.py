"""Runs the tests of one package that works on arrays of any library, with kjit.numpy as the library:

    array_packages_child.py PACKAGE SITE RESULTS [TEST ...]

SITE is the folder of the installed packages. RESULTS has lines as suites.py says. Each package has a list of the libraries that
its tests run with. A class below puts kjit.numpy on this list. Only the tests that use kjit.numpy are run. The files of the
package are not changed."""
import os
import sys
import warnings

import pytest
import pytest_results

NAME = "kjit.numpy"


class Library:
    """A plugin of pytest that adds kjit.numpy to the libraries of a package. tests: the files and folders in SITE."""

    tests, options, environment = (), (), {}

    def prepare(self):
        """Is called before pytest imports the tests."""

    def uses_kjit(self, item):
        return "kjit" in item.nodeid.partition("[")[2]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items):
        items[:] = [item for item in items if self.uses_kjit(item)]


class ArrayApiCompat(Library):
    tests = ("array_api_compat/tests",)

    def prepare(self):
        from array_api_compat.tests import _helpers

        _helpers.all_libraries.append(NAME)


class ArrayApiExtra(Library):
    tests = ("array_api_extra/tests/main",)
    options = ("-W", "error::DeprecationWarning")

    def prepare(self):
        from array_api_extra._lib._backends import Backend

        member = object.__new__(Backend)
        member._name_, member._value_ = "KJIT", NAME
        Backend._member_names_.append("KJIT")
        Backend._member_map_["KJIT"] = Backend._value2member_map_[NAME] = member


class Einops(Library):
    tests = ("einops/tests/test_ops.py", "einops/tests/test_einsum.py", "einops/tests/test_packing.py", "einops/tests/test_other.py")
    environment = {"EINOPS_TEST_BACKENDS": NAME}

    def prepare(self):
        import einops.tests
        import kjit.einops

        def backends(symbolic=False, layers=False):
            return [] if symbolic or layers else [kjit.einops.KjitBackend()]

        einops.tests.collect_test_backends = backends

    def uses_kjit(self, item):
        """These tests loop over the libraries, or do not use them."""
        names = item.function.__code__.co_names
        return "collect_test_backends" in names or "kjit" in item.nodeid or "imp_op_backends" in names or "_IMPERATIVE_BACKENDS" in names


class OptEinsum(Library):
    """The tests create their operands with build_views(), which returns kjit arrays here."""

    tests = tuple(f"opt_einsum/tests/test_{name}.py" for name in ("contract", "edge_cases", "input", "sharing"))

    def uses_kjit(self, item):
        import kjit.numpy as knp

        views = getattr(item.module, "build_views", None)
        if views is None or "build_views" not in item.function.__code__.co_names:
            return False
        if not hasattr(views, "of_numpy"):
            def build_views(*arguments, **keywords):
                return [knp.asarray(view) for view in views(*arguments, **keywords)]

            build_views.of_numpy = views
            item.module.build_views = build_views
        return True


class ScikitLearn(Library):
    tests = tuple("sklearn/" + name for name in (
        "tests/test_common.py", "utils/tests/test_array_api.py", "decomposition/tests/test_pca.py", "linear_model/tests/test_base.py",
        "linear_model/tests/test_ridge.py", "linear_model/tests/test_logistic.py", "linear_model/_glm/tests/test_glm.py",
        "metrics/tests/test_classification.py", "metrics/tests/test_common.py", "metrics/tests/test_pairwise.py",
        "metrics/cluster/tests/test_common.py", "metrics/cluster/tests/test_supervised.py", "_loss/tests/test_loss.py", "_loss/tests/test_link.py",
        "preprocessing/tests/test_data.py", "preprocessing/tests/test_label.py", "preprocessing/tests/test_polynomial.py",
        "tests/test_calibration.py", "tests/test_config.py", "tests/test_kernel_approximation.py", "tests/test_naive_bayes.py", "tests/test_pipeline.py",
        "mixture/tests/test_gaussian_mixture.py", "model_selection/tests/test_search.py", "model_selection/tests/test_split.py",
        "model_selection/tests/test_validation.py", "utils/tests/test_extmath.py", "utils/tests/test_indexing.py", "utils/tests/test_multiclass.py",
        "utils/tests/test_optimize.py", "utils/tests/test_stats.py", "utils/tests/test_validation.py"))  # fmt: skip
    environment = {"SCIPY_ARRAY_API": "1"}

    def prepare(self):
        from sklearn.utils import _array_api

        def yield_namespaces(include_numpy_namespaces=True):
            yield NAME

        def yield_mixed():
            kjit, numpy = _array_api.NamespaceAndDevice(NAME, None), _array_api.NamespaceAndDevice("numpy", None)
            yield kjit, numpy, "kjit to numpy"
            yield numpy, kjit, "numpy to kjit"

        _array_api.yield_namespaces = yield_namespaces
        _array_api.yield_mixed_namespace_input_permutations = yield_mixed


class SciPy(Library):
    tests = tuple("scipy/" + name for name in (
        "stats/tests", "cluster/tests", "special/tests", "constants/tests", "differentiate/tests", "fft/tests", "integrate/tests", "ndimage/tests",
        "signal/tests", "spatial/transform/tests", "_lib/tests", "interpolate/tests", "linalg/tests/test_special_matrices.py",
        "linalg/tests/test_procrustes.py", "optimize/tests/test_bracket.py", "optimize/tests/test_chandrupatla.py",
        "optimize/tests/test_optimize.py"))  # fmt: skip
    options = ("-m", "array_api_backends and not slow and not xslow")
    environment = {"SCIPY_ARRAY_API": "1"}

    @pytest.hookimpl(tryfirst=True)
    def pytest_plugin_registered(self, plugin):
        """The parameters of the fixture xp in SciPy's conftest.py are the libraries. pytest reads them after this
        call."""
        if hasattr(plugin, "xp_known_backends"):
            import kjit.numpy as knp

            plugin.xp_known_backends.add(NAME)
            parameter = pytest.param(knp, id=NAME, marks=pytest.mark.array_api_backends)
            object.__setattr__(plugin.xp._fixture_function_marker, "params", (parameter,))


LIBRARIES = {
    "array_api_compat": ArrayApiCompat,
    "array_api_extra": ArrayApiExtra,
    "einops": Einops,
    "opt_einsum": OptEinsum,
    "scipy": SciPy,
    "sklearn": ScikitLearn,
}


class Reporter(pytest_results.Reporter):
    """Uses pytest's names of tests. A test that the package expects to fail counts as skipped."""

    @staticmethod
    def test_of(node):
        return node.partition("[")[0]

    def pytest_runtest_makereport(self, item, call):
        """The report has the outcome, because it knows the result that the test expects."""

    def pytest_runtest_logreport(self, report):
        if report.passed and report.when != "call":
            return
        self.outcomes.append("pass" if report.passed else "skip" if report.skipped else "fail")
        if not report.passed:
            self.first = self.first or getattr(report, "wasxfail", None) or reason_of(report.longrepr, self.site)


def reason_of(longrepr, site):
    """Returns the exception's message, or the reason that a skipped test gives."""
    if isinstance(longrepr, tuple):
        return str(longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(longrepr, "reprcrash", None)
    return " ".join((crash.message if crash else str(longrepr)).replace(site + os.sep, "").split())[:300]


def main():
    package, site, results = sys.argv[1], sys.argv[2], sys.argv[-1]
    wanted = sys.argv[3:-1]
    library = LIBRARIES[package]()
    os.environ.update(library.environment)
    sys.path.insert(0, site)
    warnings.simplefilter("ignore")
    file = pytest_results.File(results)
    try:
        library.prepare()
    except Exception as error:
        file.write("*", "fail", pytest_results.first_line(error, site))
        return 0
    reporter = Reporter(file, site)
    where = [os.path.join(site, *test.split("/")) for test in wanted or library.tests]
    command = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", "--rootdir", site, "-c", os.devnull, *library.options, *where]
    if os.environ.get("NUMBA_SUITE_TRACE"):
        command.append("--tb=short")
    code = pytest.main(command, plugins=[library, reporter])
    reporter.flush()
    # The results contain the outcome of failing tests. pytest's own failures have a status above 1.
    return max(int(code) - 1, 0) % 4


if __name__ == "__main__":
    sys.exit(main())

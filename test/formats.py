"""The two kinds of lit tests without RUN lines. A unit test or a fuzz target is a .c file from which the build makes a
program."""
import glob
import os

import lit.formats
import lit.Test
import lit.util

SKIPPED = 77  # exit status of a unit test if the machine lacks something that the test needs


def stem(test):
    return os.path.splitext(test.path_in_suite[-1])[0]


class Program(lit.formats.FileBasedTest):
    """Runs a program; exit status 0 passes."""

    def command(self, test, lit_config):
        raise NotImplementedError

    def execute(self, test, lit_config):
        command = self.command(test, lit_config)
        if not os.path.exists(command[0]):
            return lit.Test.UNRESOLVED, "not built: " + command[0]
        work_dir = os.path.join(test.getExecPath() + ".tmp")
        os.makedirs(work_dir, exist_ok=True)
        try:
            out, err, status = lit.util.executeCommand(command, cwd=work_dir, env=test.config.environment, timeout=lit_config.maxIndividualTestTime)
        except lit.util.ExecuteCommandTimeoutException as timeout:
            return lit.Test.TIMEOUT, "%s\n%s\n%s" % (timeout.msg, timeout.out, timeout.err)
        if status == SKIPPED:
            return lit.Test.UNSUPPORTED, out + err
        return (lit.Test.PASS, "") if status == 0 else (lit.Test.FAIL, "%s\nexit status %d\n%s%s" % (" ".join(command), status, out, err))


class UnitTest(Program):
    def command(self, test, lit_config):
        return [os.path.join(test.config.kjit_test_dir, "unit", stem(test))]


class FuzzTest(Program):
    """A fuzz run with a limit and a seed: the corpus in the target's folder, every .kir file of the project, then
    mutations of them. lit --param fuzz_runs=N, fuzz_seed=S."""

    def command(self, test, lit_config):
        source_dir = test.config.kjit_source_dir
        here = os.path.dirname(test.getSourcePath())
        folders = [os.path.join(here, "corpus", stem(test))]
        if stem(test) not in test.config.fuzz_own_corpus:
            folders += [os.path.join(source_dir, "examples"), os.path.join(source_dir, "test")]
        corpora = [folder for folder in folders if os.path.isdir(folder)]
        runs = lit_config.params.get("fuzz_runs", test.config.fuzz_runs.get(stem(test), "20000"))
        return [os.path.join(test.config.kjit_test_dir, "fuzz", stem(test)), "-runs=%s" % runs, "-seed=%s" % lit_config.params.get("fuzz_seed", "1"),
                "-dict=" + os.path.join(here, test.config.fuzz_dictionaries.get(stem(test), "kir.dict")), "-max_total_time=%s" % lit_config.params.get("fuzz_seconds", "60"), "-timeout=200", *corpora]

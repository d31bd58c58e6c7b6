"""Numbered random programs in several processes: each has a context of its own, and is started again behind a program that it does not survive or that takes too long."""
import multiprocessing.connection
import os
import secrets
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from share import share_of_numbers


def add_options(parser, count):
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=secrets.randbits(40), help="the number of the first one")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--failures", type=int, default=20, help="stop after so many")
    parser.add_argument("--timeout", type=float, default=200, help="seconds that one may take")


def worker(options, start, run_one, first, count, step, out):
    state = start(options)
    for seed in range(first, first + count * step, step):
        out.send((seed, "begun", None))
        try:
            out.send((seed, *run_one(state, seed)))
        except Exception:  # an error in this tool: it cannot evaluate its own kernel
            out.send((seed, "failed", f"--- {seed}\n{traceback.format_exc()}"))
    out.send((None, "done", None))


class Job:
    """A process that runs every step-th program."""

    def __init__(self, options, start, run_one, describe_lost, first, count, step):
        self.options, self.functions, self.describe_lost = options, (start, run_one), describe_lost
        self.next, self.left, self.step = first, count, step
        self.start()

    def start(self):
        self.pipe, end = multiprocessing.Pipe(False)
        arguments = (self.options, *self.functions, self.next, self.left, self.step, end)
        self.process = multiprocessing.get_context("fork").Process(target=worker, args=arguments)
        self.process.start()
        end.close()
        self.begun, self.since = None, time.monotonic()

    def died(self, why):
        """Returns the text to report, and continues after this program."""
        self.process.kill()
        self.process.join()
        lost, text = self.begun, why
        if lost is None:
            self.left = 0
        else:
            text = self.describe_lost(lost, self.options, why)
            self.advance(lost)
        if self.left:
            self.start()
        return lost, "failed", text

    def advance(self, seed):
        done = (seed - self.next) // self.step + 1
        self.next, self.left = self.next + done * self.step, self.left - done


def run(options, what, start, run_one, describe_lost):
    """start(options) makes what run_one(it, seed) needs, which gives a word for what happened and a text for a failure. Gives the exit status."""
    options.seed, options.count = share_of_numbers(options.seed, options.count)
    print(f"{options.count} {what} from --seed {options.seed}", flush=True)
    begin, step = time.monotonic(), min(options.jobs, options.count)
    jobs = [Job(options, start, run_one, describe_lost, options.seed + k, (options.count - k + step - 1) // step, step) for k in range(step)]
    counts, failures = {}, 0
    while jobs and failures < options.failures:
        ready = multiprocessing.connection.wait([j.pipe for j in jobs], timeout=1)
        for job in list(jobs):
            message = None
            if job.pipe in ready:
                try:
                    message = job.pipe.recv()
                except EOFError:
                    job.process.join()
                    message = job.died(f"the process ended with {job.process.exitcode}")
            elif time.monotonic() - job.since > options.timeout:
                message = job.died(f"not done after {options.timeout} seconds")
            if message is None:
                continue
            number, word, text = message
            job.since = time.monotonic()
            if word == "begun":
                job.begun = number
                continue
            if number is not None and job.process.is_alive() and job.begun == number:
                job.advance(number)
                job.begun = None
            if text:
                failures += 1
                print(text + "\n", flush=True)
            if word != "done":
                counts[word] = counts.get(word, 0) + 1
            if word == "done" or job.left <= 0 and not job.process.is_alive():
                job.process.join()
                jobs.remove(job)
    for job in jobs:
        job.process.kill()
    print(f"{', '.join(f'{n} {word}' for word, n in sorted(counts.items()))}, {time.monotonic() - begin:.1f} s, --seed {options.seed}")
    return failures > 0

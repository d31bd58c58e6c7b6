"""A graph: kernels and algorithms are captured from a stream once, and then launched together, with
new values in the same arrays. Each launch of this graph ranks the values of an array, and moves each
value toward the value in the middle."""
import kjit
import numpy as np

COUNT, STEPS = 10_001, 20


@kjit.jit
def move(x, ordered):
    """Moves each element toward the median."""
    for i in kjit.grid_range(len(x)):
        x[i] = 0.5 * x[i] + 0.5 * ordered[len(ordered) // 2]


@kjit.jit
def record(history, total, step):
    history[step[0]] = total[()]
    step[0] += 1


host = np.random.default_rng().random(COUNT)
x, history, step = kjit.array(host), kjit.array(np.zeros(STEPS)), kjit.array(np.zeros(1, np.int64))
stream = kjit.device().stream()
sort, total = kjit.sort(x, plan=True, stream=stream), kjit.reduce(x, plan=True, stream=stream)
with stream.capture() as graph:
    sort.run(stream)
    move[None, None, stream](x, sort.result)
    total.run(stream)
    record[1, 1, stream](history, total.result, step)
for _ in range(STEPS):
    graph.launch()
stream.synchronize()

sums = []
for _ in range(STEPS):
    host = 0.5 * host + 0.5 * np.sort(host)[COUNT // 2]
    sums.append(host.sum())
np.testing.assert_allclose(x.to_host(), host, rtol=1e-12)
np.testing.assert_allclose(history.to_host(), sums, rtol=1e-12)
print(f"{STEPS} launches of a graph of {len(graph)} operations")

"""Queues work on streams and does not wait for it: a stream of high priority, a callback that runs when
a stream is done, and coroutines that await streams while other coroutines run."""
import asyncio
import threading

from kjit import cuda

import numpy as np


@cuda.jit
def power_sum(result, x, exponent):
    """Adds x ** exponent of all elements to result[0]."""
    total = 0.0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i] ** exponent
    cuda.atomic.add(result, 0, total)


async def moment(x, exponent, finished):
    stream = cuda.stream()
    d_x, result = cuda.to_device(x, stream=stream), cuda.to_device(np.zeros(1), stream=stream)
    power_sum[8, 64, stream](result, d_x, exponent)
    await stream.async_done()  # other coroutines run meanwhile
    finished.append(exponent)
    return result.copy_to_host()[0]


async def moments(x):
    finished = []
    found = await asyncio.gather(*(moment(x, exponent, finished) for exponent in (1, 2, 3, 4)))
    assert sorted(finished) == [1, 2, 3, 4]
    return found


def with_callback(x):
    """Returns the sum of squares, which a callback takes from pinned memory."""
    stream, done, seen = cuda.stream(priority=-1), threading.Event(), []
    result, host = cuda.to_device(np.zeros(1), stream=stream), cuda.pinned_array(1)
    d_x = cuda.to_device(x, stream=stream)
    power_sum[8, 64, stream](result, d_x, 2)
    result.copy_to_host(host, stream=stream)

    def callback(stream, status, arg):
        seen.append(arg[0])
        done.set()

    stream.add_callback(callback, host)
    assert done.wait(60), "the callback never came"
    return seen[0]


x = np.random.default_rng().random(50_000)
np.testing.assert_allclose(asyncio.run(moments(x)), [(x**k).sum() for k in (1, 2, 3, 4)], rtol=1e-9)
np.testing.assert_allclose(with_callback(x), (x**2).sum(), rtol=1e-9)
print("the moments of", x.size, "numbers are those of NumPy")

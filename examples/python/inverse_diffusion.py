"""Finds the field of temperatures from which heat has spread for 1000 steps, by gradient steps. The conductivity depends on the
temperature.

The adjoint of a step needs the field before that step. A run keeps every 25th field. On the way back, the 25 steps that follow a
kept field run again. So the program keeps 65 fields, not 1000."""
import kjit
import numpy as np

STEPS, KEPT, RATE = 1000, 25, 0.05


def flow(here, there):
    mean = 0.5 * (here + there)
    return (0.2 + mean * mean) * (there - here)


@kjit.jit
def step(u, rate, after):
    for i, j in kjit.grid_range(u.shape):
        c = u[i, j]
        below, above = u[max(i - 1, 0), j], u[min(i + 1, u.shape[0] - 1), j]
        left, right = u[i, max(j - 1, 0)], u[i, min(j + 1, u.shape[1] - 1)]
        after[i, j] = c + rate * (flow(c, below) + flow(c, above) + flow(c, left) + flow(c, right))


step_back = kjit.adjoint(step, wrt=("u", "after"))


def run(start):
    """Returns the field after all steps, and every 25th field before."""
    kept, u = [], kjit.array(start)
    for number in range(STEPS):
        if number % KEPT == 0:
            kept.append(kjit.array(u))
        after = kjit.empty(u.shape)
        step(u, RATE, after)
        u = after
    return u, kept


def loss_and_gradient(start, target):
    """Returns half the sum of squared differences between the last field and the target, and its
    derivatives by the first field."""
    last, kept = run(start)
    miss = last.to_host() - target
    by_after = kjit.array(miss)
    fields = [kjit.empty(start.shape) for _ in range(KEPT + 1)]
    for first in reversed(kept):
        fields[0] = first
        for k in range(KEPT - 1):
            step(fields[k], RATE, fields[k + 1])
        for k in reversed(range(KEPT)):
            by_u = kjit.zeros(start.shape)
            step_back(fields[k], RATE, fields[k + 1], by_u, by_after)
            by_after = by_u
    return 0.5 * float((miss * miss).sum()), by_after.to_host()


def main():
    y, x = np.mgrid[0:24, 0:32]
    true = np.exp(-((x - 9) ** 2 + (y - 8) ** 2) / 18) + 0.7 * np.exp(-((x - 23) ** 2 + (y - 15) ** 2) / 30)
    target = run(true)[0].to_host()

    # Compares the gradient along a random direction with a central difference.
    rng = np.random.default_rng()
    guess, direction = np.full(true.shape, true.mean()), rng.standard_normal(true.shape)
    h = 1e-5
    difference = (loss_and_gradient(guess + h * direction, target)[0] - loss_and_gradient(guess - h * direction, target)[0]) / (2 * h)
    slope = float((loss_and_gradient(guess, target)[1] * direction).sum())
    assert abs(slope - difference) <= 1e-6 * (abs(difference) + 1e-3), (slope, difference)

    # Gradient steps whose length follows from the last two gradients (Barzilai and Borwein).
    first, gradient = loss_and_gradient(guess, target)
    length, loss = 1.0, first
    for _ in range(40):
        moved = guess - length * gradient
        loss, new = loss_and_gradient(moved, target)
        s, d = moved - guess, new - gradient
        length = float((s * s).sum() / abs((s * d).sum()))
        guess, gradient = moved, new
    before, after = np.abs(true - true.mean()).mean(), np.abs(true - guess).mean()
    assert loss < 1e-2 * first and after < 0.5 * before, (first, loss, before, after)
    print(f"the last field is missed by {loss / first:.1e} of what it was missed by, the first one by {after / before:.2f}")


main()

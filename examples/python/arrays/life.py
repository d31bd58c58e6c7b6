"""Conway's game of life: slices count the neighbours."""
import numpy


def run(xp, steps=30):
    host = (numpy.random.default_rng(3).random((66, 98)) < 0.3).astype("i4")
    host[0] = host[-1] = host[:, 0] = host[:, -1] = 0
    world = xp.asarray(host)
    for _ in range(steps):
        inner = world[1:-1, 1:-1]
        around = (
            world[:-2, :-2] + world[:-2, 1:-1] + world[:-2, 2:] + world[1:-1, :-2]
            + world[1:-1, 2:] + world[2:, :-2] + world[2:, 1:-1] + world[2:, 2:]
        )  # fmt: skip
        world[1:-1, 1:-1] = xp.where((around == 3) | ((around == 2) & (inner == 1)), 1, 0)
    return world, xp.sum(world)


if __name__ == "__main__":
    from both import compare

    compare(run, "life: {} cells are alive")

"""Heat in a plate that two processes share, with mpi4py: each has half of the rows and gets its neighbour's edge before a step.
    mpirun -n 2 python3 mpi_ranks.py"""
import kjit
import numpy as np
from mpi4py import MPI

ROWS, COLUMNS, STEPS = 64, 48, 200


@kjit.jit
def step(new, old, c):
    for i, j in kjit.grid_range(old.shape[0] - 2, old.shape[1] - 2):
        y, x = i + 1, j + 1
        new[y, x] = old[y, x] + c * (old[y - 1, x] + old[y + 1, x] + old[y, x - 1] + old[y, x + 1] - 4 * old[y, x])


def exchange(part, world, above, below):
    """Exchanges the rows at the edges with the neighbours, through host memory."""
    edge = np.empty(COLUMNS)
    world.Sendrecv(part[1].to_host(), above, recvbuf=edge, source=below)
    if below != MPI.PROC_NULL:
        part[-1].copy_from(edge)
    world.Sendrecv(part[-2].to_host(), below, recvbuf=edge, source=above)
    if above != MPI.PROC_NULL:
        part[0].copy_from(edge)


world = MPI.COMM_WORLD
rank, size = world.rank, world.size
plate = np.zeros((ROWS, COLUMNS))
if rank == 0:
    plate[20:40, 10:30] = np.random.default_rng().uniform(50, 100, (20, 20))
world.Bcast(plate)
bounds = np.linspace(0, ROWS, size + 1).astype(int)
first, last = max(bounds[rank] - 1, 0), min(bounds[rank + 1] + 1, ROWS)
above, below = (rank - 1 if rank else MPI.PROC_NULL), (rank + 1 if rank + 1 < size else MPI.PROC_NULL)
# On a host with several GPUs each rank uses one of them.
gpus = [f"cuda:{d.ordinal}" for d in kjit.devices() if d.kind == "cuda"]
place = gpus[rank % len(gpus)] if gpus and kjit.device().kind == "cuda" else "cpu"
old, new = kjit.array(plate[first:last], device=place), kjit.array(plate[first:last], device=place)
for _ in range(STEPS):
    exchange(old, world, above, below)
    step(new, old, 0.2)
    old, new = new, old
mine = old.to_host()[bounds[rank] - first : bounds[rank + 1] - first]
parts = world.gather(mine)
if rank == 0:
    expected = plate
    for _ in range(STEPS):
        inner = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:] - 4 * expected[1:-1, 1:-1]
        expected = np.pad(expected[1:-1, 1:-1] + 0.2 * inner, 1)
    np.testing.assert_allclose(np.concatenate(parts), expected, rtol=1e-9, atol=1e-9)
    print(f"{STEPS} steps by {size} ranks on {place}: the warmest place has {expected.max():.2f}, as in NumPy")

"""A small PyTorch network whose layers are kjit kernels: an activation by kjit.torch.function, and
a layer with its own derivative kernel. It learns a function of two variables."""

import sys

try:
    import torch
except ImportError:
    print("PyTorch is not installed: nothing to train")
    sys.exit(0)

import kjit
import kjit.torch


def activation(x, slope):
    """A smooth function, nearly x for large x and nearly slope * x for small x."""
    return slope * x + (1 - slope) * kjit.log1p(kjit.exp(x))


@kjit.jit
def bumps(r, x, center, width):
    """r[i, k] = exp(-width[k] * |x[i] - center[k]|^2)"""
    for i, k in kjit.grid_range(r.shape[0], r.shape[1]):
        square = 0.0
        for j in range(x.shape[1]):
            square += (x[i, j] - center[k, j]) * (x[i, j] - center[k, j])
        r[i, k] = kjit.exp(-width[k] * square)


@kjit.jit
def bumps_derivative(r, x, center, width, dr, dx, dcenter, dwidth):
    for i, k in kjit.grid_range(r.shape[0], r.shape[1]):
        square = 0.0
        for j in range(x.shape[1]):
            along = 2 * width[k] * (x[i, j] - center[k, j]) * r[i, k] * dr[i, k]
            kjit.atomic_add(dx[i, j], -along)
            kjit.atomic_add(dcenter[k, j], along)
            square += (x[i, j] - center[k, j]) * (x[i, j] - center[k, j])
        kjit.atomic_add(dwidth[k], -square * r[i, k] * dr[i, k])


class Network(torch.nn.Module):
    activate = kjit.torch.function(activation)
    layer = kjit.torch.function(
        bumps,
        outputs={"r": lambda x, center, width: x.new_empty(len(x), len(width))},
        derivative=bumps_derivative,
    )

    def __init__(self, count):
        super().__init__()
        self.center = torch.nn.Parameter(2 * torch.rand(count, 2, dtype=torch.float64) - 1)
        self.width = torch.nn.Parameter(torch.full((count,), 4.0, dtype=torch.float64))
        self.slope = torch.nn.Parameter(torch.tensor(0.1, dtype=torch.float64))
        self.inner = torch.nn.Linear(count, 16, dtype=torch.float64)
        self.outer = torch.nn.Linear(16, 1, dtype=torch.float64)

    def forward(self, x):
        near = Network.layer(x, self.center, self.width)
        return self.outer(Network.activate(self.inner(near), self.slope))[:, 0]


torch.manual_seed(1)
x = 2 * torch.rand(400, 2, dtype=torch.float64) - 1
y = torch.sin(3 * x[:, 0]) * x[:, 1]
network = Network(20)
some = tuple(p.detach()[:3].clone().requires_grad_() for p in (x, network.center, network.width))
assert torch.autograd.gradcheck(Network.layer, some)

optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
losses = []
for _ in range(60):
    optimizer.zero_grad()
    loss = ((network(x) - y) ** 2).mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.2 * losses[0]
print(f"60 steps: the mean square error went from {losses[0]:.3f} to {losses[-1]:.5f}")

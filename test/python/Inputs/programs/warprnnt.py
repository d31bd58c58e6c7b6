"""The forward and backward variables, costs and gradients of the RNN transducer's loss: kernels for a GPU, without torch."""
import sys
import types

import numpy as np
from numba import cuda
from program_help import bare, random

torch = types.ModuleType("torch")
torch.Tensor = np.ndarray
torch.jit = types.SimpleNamespace(script=lambda f: f)
sys.modules["torch"] = torch
for package in ("warprnnt_numba", "warprnnt_numba.rnnt_loss", "warprnnt_numba.rnnt_loss.utils"):
    bare(package)
for package in ("utils.cuda_utils", "rnnt_atomic_locks", "rnnt_atomic_locks.utils"):
    bare("warprnnt_numba.rnnt_loss." + package)
from warprnnt_numba.rnnt_loss.rnnt_atomic_locks.utils import naive_gpu_rnnt_kernel  # noqa: E402
from warprnnt_numba.rnnt_loss.utils.cuda_utils import gpu_rnnt_kernel, reduce  # noqa: E402

B, T, U, V = 3, 7, 5, 6


def inputs(dtype="f4"):
    acts = random().uniform(-1, 1, (B * T * U * V)).astype(dtype)
    labels = random(2).randint(1, V, (B, U - 1)).astype("i8")
    return acts, labels, np.array([T, T - 2, T], "i8"), np.array([U - 1, U - 2, U - 1], "i8")


def denominators(acts):
    denom = np.zeros(B * T * U, acts.dtype)
    stream = cuda.default_stream()
    reduce.reduce_max(acts, denom, rows=V, cols=B * T * U, minus=False, stream=stream)
    reduce.reduce_exp(acts, denom, rows=V, cols=B * T * U, minus=True, stream=stream)
    return denom


def check_denominators():
    acts = inputs()[0]
    rows = acts.reshape(-1, V).astype("f8")
    np.testing.assert_allclose(denominators(acts), -np.log(np.exp(rows).sum(1)), rtol=1e-5)


def cost(scores, labels):
    """The negative log-likelihood, computed by the recurrence that defines it."""
    times, lengths = scores.shape[:2]
    alpha = np.full((times, lengths), -np.inf)
    alpha[0, 0] = 0
    for t in range(times):
        for u in range(lengths):
            if t > 0:
                alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t - 1, u] + scores[t - 1, u, 0])
            if u > 0:
                alpha[t, u] = np.logaddexp(alpha[t, u], alpha[t, u - 1] + scores[t, u - 1, labels[u - 1]])
    return alpha[-1, -1] + scores[-1, -1, 0]


def check_losses():
    acts, labels, times, lengths = inputs()
    denom, alphas, betas = denominators(acts), np.zeros(B * T * U, "f4"), np.zeros(B * T * U, "f4")
    forward, backward, grads = np.zeros(B, "f4"), np.zeros(B, "f4"), np.zeros_like(acts)
    gpu_rnnt_kernel.compute_alphas_kernel[B, U](acts, denom, alphas, forward, times, lengths, labels, B, T, U, V, 0)
    gpu_rnnt_kernel.compute_betas_kernel[B, U](acts, denom, betas, backward, times, lengths, labels, B, T, U, V, 0)
    gpu_rnnt_kernel.compute_grad_kernel[B * T * U, 32](grads, acts, denom, alphas, betas, forward, times, lengths, labels, B, T, U, V, 0, 0.0, 0.0)
    scores = acts.reshape(B, T, U, V).astype("f8")
    scores -= np.log(np.exp(scores).sum(-1, keepdims=True))
    wanted = [cost(scores[b, :times[b], :lengths[b] + 1], labels[b]) for b in range(B)]
    np.testing.assert_allclose(forward, wanted, rtol=1e-5)
    np.testing.assert_allclose(backward, wanted, rtol=1e-5)
    np.testing.assert_allclose(grads.reshape(B, -1, V).sum(-1), 0, atol=1e-5)


def check_atomic_losses():
    acts, labels, times, lengths = inputs()
    denom, alphas, forward = denominators(acts), np.zeros(B * T * U, "f4"), np.zeros(B, "f4")
    locks = np.zeros((B, U + 1), "i4")
    naive_gpu_rnnt_kernel.compute_alphas_kernel_atomic_locks[B, U](acts, denom, alphas, forward, times, lengths, labels, B, T, U, V, 0, locks)
    scores = acts.reshape(B, T, U, V).astype("f8")
    scores -= np.log(np.exp(scores).sum(-1, keepdims=True))
    np.testing.assert_allclose(forward, [cost(scores[b, :times[b], :lengths[b] + 1], labels[b]) for b in range(B)], rtol=1e-5)

"""A training of the network, line by line: one observation after the other, Adam written out."""

from __future__ import annotations

import numpy as np
import torch


def phi(network, scale, x):
    return torch.cat((x, network(x[None])[0] * scale))


def predicted(network, scale, catalogue, kind, thing, theta):
    """A reward's mean, or the mean over the items of an answer."""
    if kind == "arm":
        return phi(network, scale, catalogue.arm_features[thing]) @ theta
    edges = catalogue.arms_of(torch.tensor([thing]))
    total = 0.0
    for arm, share in zip(edges.target, edges.weight, strict=True):
        total = total + share * (phi(network, scale, catalogue.arm_features[arm]) @ theta)
    return total


class Adam:
    """AdamW (Loshchilov, Hutter 2019), for one tensor."""

    def __init__(self, value, rate, decay):
        self.value, self.rate, self.decay, self.t = value, rate, decay, 0
        self.first, self.second = torch.zeros_like(value), torch.zeros_like(value)

    def step(self, gradient):
        self.t += 1
        with torch.no_grad():
            self.value *= 1 - self.rate * self.decay
            self.first = 0.9 * self.first + 0.1 * gradient
            self.second = 0.999 * self.second + 0.001 * gradient**2
            first, second = self.first / (1 - 0.9**self.t), self.second / (1 - 0.999**self.t)
            self.value -= self.rate * first / (second.sqrt() + 1e-8)


def train(network, scale, catalogue, log, thetas, batches, rate, decay):
    """Train `network`; log holds (group, user, kind, thing, value), thetas a dict (group, user) -> theta."""
    thetas = {key: theta.clone().requires_grad_() for key, theta in thetas.items()}
    weights = list(network.parameters())
    steps = [Adam(w, rate, decay) for w in weights] + [Adam(t, rate, 0.0) for t in thetas.values()]
    for batch in batches:
        loss = torch.zeros(())
        for number in batch:
            group, user, kind, thing, value = log[number]
            mean = predicted(network, scale, catalogue, kind, thing, thetas[group, user])
            loss = loss + (mean - value) ** 2 / len(batch)
        gradients = torch.autograd.grad(loss, [*weights, *thetas.values()], allow_unused=True)
        for adam, gradient in zip(steps, gradients, strict=True):
            # Rows of users who are not in the batch have a gradient of 0, and Adam's memory moves them on.
            adam.step(torch.zeros_like(adam.value) if gradient is None else gradient)


def rescaled(network, catalogue, length):
    made = network(catalogue.arm_features).detach().numpy()
    return length / (np.sqrt((made**2).mean(0)) * np.sqrt(made.shape[1]))

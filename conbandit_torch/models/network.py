"""Features that a network makes of the arms' own, trained while the bandit plays."""

from __future__ import annotations

import threading
import time

import torch
from torch import Tensor, nn

from conbandit_torch.core.blocks import EVERY_ROW, Index
from conbandit_torch.core.checks import all_finite
from conbandit_torch.core.context import Context
from conbandit_torch.core.randomness import Stream
from conbandit_torch.models.history import Observations, Refit
from conbandit_torch.models.inverses import NumericsError
from conbandit_torch.models.refits import RefitEvery, RefitSchedule, refit_schedule
from conbandit_torch.models.representation import Representation

TINY = 1e-6  # an output that is smaller for all arms says nothing, and counts as 0
OFTEN_AT_FIRST = RefitSchedule(every=20, growth=0.1)
_GENERATOR = threading.Lock()  # layers draw from the one that all threads share


class Network(Representation):
    """What a network makes of the arms' features, shared by all users (Riquelme et al. 2018).

    Rule: `phi_a = (x_a, s f_w(x_a))`, of a key-term the mean of its arms' phi. At refits, `steps` times over,
    a mini-batch of the log is drawn, and w takes a step of Adam down the loss of
        mean(phi^T theta_u)   against the reward, or the answer,
    where every user's theta takes such steps too, from where it is; the loss is the link's, the squared error
    for linear means. Then s scales all outputs to one mean square over all arms, and every user's
    regressions are rebuilt on the new phi. Between refits phi stays as it is.
    Mini-batches are drawn from counter-based random numbers, and Adam is new at every refit, so that
    `state_dict` is the whole policy. The network is in evaluation mode all the time: nothing in it is random.
    Processes over which users are split draw the same mini-batches of everybody's log, and sum the gradients
    of their own parts of them: the training is that of one process, but for rounding.
    Symbols: m outputs of the network; D features x, unless `keep_features` is False.
    Differs: Riquelme et al. have one theta per action and a Bayesian regression, here one per user and any
    linear policy; they do not show x itself to the model.

    Args:
        network: any module from [n, D] features to [n, m] numbers; None: `Layers(hidden, outputs)`.
        hidden: width of the hidden layer of the network that is made where none is given.
        outputs: m of the network that is made where none is given.
        keep_features: whether the model sees x as well. Without, its size does not grow with D.
        redraw: whether the network's weights are drawn anew, from the policy's seed; False: it starts with
            the weights that it has, those of an earlier training for example.
        refit_every: rounds between trainings, a number or a schedule.
        steps: of Adam, in a training.
        batch: observations in a mini-batch.
        learning_rate: of Adam.
        weight_decay: by which Adam shrinks the weights (decoupled).
        length: of `s f(x)`, root mean square over all arms; the shorter, the more the ridge holds them back.
    """

    learns = True
    takes_links = "any"
    scale: Tensor  # [m] s
    trainings: Tensor  # [] so far

    def __init__(
        self,
        network: nn.Module | None = None,
        *,
        hidden: int = 64,
        outputs: int = 16,
        keep_features: bool = True,
        redraw: bool = True,
        refit_every: RefitEvery = OFTEN_AT_FIRST,
        steps: int = 200,
        batch: int = 256,
        learning_rate: float = 0.01,
        weight_decay: float = 0.01,
        length: float = 0.7,
    ) -> None:
        super().__init__()
        for name, least in {"hidden": hidden, "outputs": outputs, "steps": steps, "batch": batch}.items():
            if least < 1:
                raise ValueError(f"{name} must be at least 1, got {least}")
        if not 0 < learning_rate < float("inf"):
            raise ValueError(f"learning_rate must be above 0 and finite, got {learning_rate}")
        if not 0 < length < float("inf"):
            raise ValueError(f"length must be above 0 and finite, got {length}")
        if not 0 <= weight_decay < float("inf"):
            raise ValueError(f"weight_decay must be a number of at least 0, got {weight_decay}")
        if network is not None and not isinstance(network, nn.Module):
            raise TypeError(f"network must be a torch.nn.Module, got {network!r}")
        self.hidden, self.outputs = hidden, outputs
        self.network = nn.Identity() if network is None else network
        self._made_here = network is None
        self.keep_features, self.redraw = keep_features, redraw
        self.length = length
        self.steps, self.batch = steps, batch
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self.refit_every = refit_schedule(refit_every)
        self.refit_seconds = 0.0  # of the last refit
        self._losses = torch.zeros(2)  # at the first and the last tenth of the last training's steps

    def build(self, seed: int) -> None:
        """The network, with weights drawn from the seed."""
        like = self.catalogue.arm_features
        network = self.network
        if self._made_here:
            network = Layers(self.catalogue.dim, self.hidden, self.outputs)
        if self.redraw:
            _redraw(network, Stream(seed, "network weights"))
        self.network = network.to(like).eval()
        self._batches = Stream(seed, "network batches")
        self.register_buffer("trainings", torch.zeros((), dtype=torch.int64, device=like.device))
        made = self._first_outputs(like[:2])
        self.dim = made.shape[1] + (self.catalogue.dim if self.keep_features else 0)
        self.register_buffer("scale", like.new_ones(made.shape[1]))
        self._rescale()

    def encode(self, x: Tensor, arms: Tensor) -> Tensor:
        """[..., D + m] `phi = (x, s f(x))`."""
        with torch.no_grad():
            return self.phi(x.reshape(-1, x.shape[-1])).view(*x.shape[:-1], -1)

    def refit(self, refit: Refit) -> None:
        """Train the network, then rebuild every user's regressions."""
        start = time.perf_counter()
        with torch.enable_grad():
            self._train(refit)
        self.trainings.add_(1)
        self._rescale()
        self.changed()
        refit.rebuild()
        self.refit_seconds = time.perf_counter() - start

    def diagnostics(self, context: Context, theta: Tensor) -> dict[str, Tensor]:
        """What the network is doing."""
        made = self.arms()[:, -len(self.scale) :]
        return {
            "network/loss_before": self._losses[0],
            "network/loss_after": self._losses[1],
            "network/outputs": made,
            "network/theta_length": theta[:, -len(self.scale) :].norm(dim=1).mean(),
            "network/refit_seconds": torch.tensor(self.refit_seconds),
        }

    def phi(self, x: Tensor) -> Tensor:
        """[n, dim] of features [n, D]; gradients flow."""
        made = self._outputs(x) * self.scale
        return torch.cat((x, made), dim=1) if self.keep_features else made

    def _outputs(self, x: Tensor) -> Tensor:
        assert self.network is not None  # `build` has made one, for the type checker
        made: Tensor = self.network(x)
        return made

    def _first_outputs(self, some: Tensor) -> Tensor:
        """[2, m] of the first arms' features [2, D], if the network can be used at all."""
        wanted = f"the network must make [n, m] numbers of [n, {some.shape[1]}] features, with any m above 0"
        try:
            made = self._outputs(some)
        except RuntimeError as error:  # torch's, about shapes
            raise ValueError(f"{wanted}; of {list(some.shape)} it made an error: {error}") from error
        if not isinstance(made, Tensor) or made.ndim != 2 or len(made) != len(some) or not made.shape[1]:
            came = list(made.shape) if isinstance(made, Tensor) else type(made).__name__
            raise ValueError(f"{wanted}; of {list(some.shape)} it made {came}")
        if made.dtype != some.dtype:
            raise ValueError(f"the network must make {some.dtype}, as the features are, got {made.dtype}")
        return made

    def _train(self, refit: Refit) -> None:
        """Steps of Adam on mini-batches of the log."""
        heads = [_Heads(seen) for seen in refit.observations]
        starts, total = self._places(heads)
        assert self.network is not None  # `build` has made one, for the type checker
        weights = [p for p in self.network.parameters() if p.requires_grad]
        thetas = [own.theta for own in heads]
        optimiser = torch.optim.AdamW(
            [
                {"params": weights, "weight_decay": self.weight_decay},
                {"params": thetas, "weight_decay": 0.0},
            ],
            lr=self.learning_rate,
        )
        losses = []
        numbers = torch.arange(self.steps, device=self.scale.device)
        drawn = self._batches.integers(numbers, int(self.trainings), self.batch, max(total, 1))  # [steps, b]
        for batch in drawn:
            for one in (*weights, *thetas):
                one.grad = torch.zeros_like(one)  # Adam moves on what has no part in a mini-batch too
            loss = self.scale.new_zeros(())
            for own, first in zip(heads, starts, strict=True):
                rows = own.order[batch[(batch >= first) & (batch < first + len(own.order))] - first]
                if len(rows):
                    about, theta = own.seen.about.take(rows), own.theta[own.position[rows]]
                    mean = refit.link.means(about, _Live(self), self.catalogue, theta)
                    loss = loss + refit.link.loss(mean, own.seen.values[rows]).sum() / self.batch
            if loss.requires_grad:
                loss.backward()
            for weight in weights if self.processes.size > 1 else ():
                assert weight.grad is not None  # set above, for the type checker
                weight.grad = self.processes.sum(weight.grad)
            optimiser.step()
            losses.append(loss.detach())
        tenth = max(1, self.steps // 10)
        every = self.processes.sum(torch.stack(losses))
        self._losses = torch.stack((every[:tenth].mean(), every[-tenth:].mean()))

    def _places(self, heads: list[_Heads]) -> tuple[list[int], int]:
        """Where each of the heads' runs begins in the log of all processes, and how long that log is.

        It holds one kind after the other, and of a kind one user after the other: the same order, however
        many processes there are, as the first users are those of the first process.
        """
        own = torch.zeros(1, 8, dtype=torch.int64, device=self.scale.device)
        for one in heads:
            own[0, one.seen.kind] = len(one.order)
        (lengths,) = self.processes.gather(own)  # [processes, kinds]
        ends = lengths.T.flatten().cumsum(0).view(8, -1)
        ranks = (ends - lengths.T)[:, self.processes.rank].tolist()
        return [ranks[one.seen.kind] for one in heads], int(ends[-1, -1])

    def _rescale(self) -> None:
        """Let all outputs have one mean square over all arms, or else a ridge means nothing."""
        with torch.no_grad():
            made = self._outputs(self.catalogue.arm_features)
        if not all_finite(made):
            raise NumericsError(
                f"the network makes NaN or infinity of the arms' features, after {int(self.trainings)} "
                f"trainings: lower learning_rate (it is {self.learning_rate}), or scale the features"
            )
        size = made.square().mean(0).sqrt() * made.shape[1] ** 0.5
        self.scale.copy_(torch.where(size > TINY, self.length / size.clamp_min(TINY), 0.0))


class Layers(nn.Module):
    """A small network: a hidden layer of rectified units, and linear outputs.

    Args:
        inputs: D.
        hidden: width of the hidden layer.
        outputs: m.
    """

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """[n, m] of features [n, D]."""
        made: Tensor = self.second(self.first(x).relu())
        return made


class _Live:
    """Vectors of arms and key-terms through which gradients flow to the network."""

    def __init__(self, own: Network) -> None:
        self._own = own

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, dim] phi."""
        return self._own.phi(self._own.catalogue.arms(ids))

    def terms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, dim] the mean of the key-terms' arms."""
        catalogue = self._own.catalogue
        every = torch.arange(catalogue.num_terms, device=catalogue.arm_features.device)[ids]
        terms, place = every.unique(return_inverse=True)
        edges = catalogue.arms_of(terms)
        arms, row = edges.target.unique(return_inverse=True)  # key-terms share arms: each is encoded once
        own = edges.weight[:, None] * self.arms(arms)[row]
        return own.new_zeros(len(terms), own.shape[1]).index_add(0, edges.owner, own)[place]


class _Heads:
    """Every user's theta for one kind of observations, as parameters of a training that ends with it."""

    def __init__(self, seen: Observations) -> None:
        self.seen = seen
        self.order = seen.users.argsort(stable=True)  # [E] one user's observations after the other's
        users, self.position = seen.users.unique(return_inverse=True)
        self.theta = seen.theta(users).detach().clone().requires_grad_()  # [n, dim]


def _redraw(network: nn.Module, stream: Stream) -> None:
    """Let every layer draw its weights anew, by its own rule, from random numbers of the stream."""
    seed = int(stream.integers(torch.zeros(1, dtype=torch.int64), 0, 1, 2**53))
    with _GENERATOR, torch.random.fork_rng(devices=[]):  # torch's own generator is left as it was
        torch.manual_seed(seed)
        for layer in network.modules():
            reset = getattr(layer, "reset_parameters", None)
            if callable(reset):
                reset()

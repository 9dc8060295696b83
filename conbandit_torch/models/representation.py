"""What a linear model sees of the arms."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn

from conbandit_torch.core.attributes import submodule
from conbandit_torch.core.blocks import EVERY_ROW, Index, as_table, look_up
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_tensor
from conbandit_torch.core.context import Context
from conbandit_torch.core.parts import Remembers, short_repr
from conbandit_torch.core.processes import ALONE, Processes
from conbandit_torch.core.questions import About
from conbandit_torch.models.history import Refit
from conbandit_torch.models.refits import RefitEvery

TakesLinks = Literal["linear", "of one score", "any"]
"""Links whose loss is the squared error; those whose means are each of one score (`Link`); or all."""


class Representation(nn.Module, Remembers):
    """What a linear model sees of the arms; of a key-term it sees the mean of its arms, as an answer does.

    To write one, implement `build`, which sets `dim` and registers buffers or parameters, and `encode`. One
    that learns says `learns = True` and implements `learn` (a step per observation), or `refit` with a number
    of rounds or a `RefitSchedule` in `refit_every`, or both; after a change it calls `changed`. One that is
    unsure of what it has learned says so in `extra`.

    A policy calls `attach`; a representation belongs to one policy.
    """

    learns = False  # whether feedback changes it; then users share it
    draws = True  # whether it depends on the seed
    takes_links: TakesLinks = "linear"  # by which links' losses it can learn, if it learns
    refit_every: RefitEvery | None = None  # rounds between two refits; None: never
    extra_size: int = 0  # numbers per candidate that `extra` works on
    dim: int  # length of the vectors that `encode` gives
    catalogue: Catalogue = submodule()
    processes: Processes = ALONE
    _table: Tensor | None = None  # [N, dim] all arms, encoded; None: not known, or not any more
    _terms: Tensor | None = None  # [K, dim] all key-terms, likewise
    _lengths: Tensor | None = None  # [N] how long the arms' vectors are, likewise

    def __init__(self) -> None:
        super().__init__()

    __repr__ = short_repr

    def attach(self, catalogue: Catalogue, seed: int) -> None:
        """Get ready for the arms of a catalogue; random numbers come from `Stream(seed, ...)`."""
        if "catalogue" in self._modules:
            raise ValueError(f"this {type(self).__name__} belongs to another policy: build one for each")
        self.catalogue = catalogue
        self.build(seed)

    def build(self, seed: int) -> None:
        """Set `dim`, and register what `encode` needs, for `self.catalogue`. Implement this."""
        raise NotImplementedError(f"{type(self).__name__} must implement build")

    def encode(self, x: Tensor, arms: Tensor) -> Tensor:
        """[..., dim] what the model sees of arms [...] with features x [..., D]. Implement this."""
        raise NotImplementedError(f"{type(self).__name__} must implement encode")

    def extra(self, context: Context, theta: Tensor) -> Tensor | None:
        """[B, A] what an optimistic score has more, for it is not sure of what it learned; None: nothing.

        Args:
            context: the candidates.
            theta: [B, dim] the preferences that scores are made of.
        """
        return None

    @property
    def steps_online(self) -> bool:
        """Whether every observation teaches it something, not only a refit."""
        return self.learns and type(self).learn is not Representation.learn

    def learn(self, about: About, theta: Tensor, residual: Tensor) -> None:
        """Take a step after Q observations, all from the representation as it is.

        Args:
            about: what was observed.
            theta: [Q, dim] the preferences that predicted it, as they are after the observation.
            residual: [Q] what came, less the prediction.
        With a link that is not linear, both are as its `weigh` says: s theta, and rho.
        """

    def refit(self, refit: Refit) -> None:
        """Fit to the whole log; called when `refit_every` says so."""

    def diagnostics(self, context: Context, theta: Tensor) -> dict[str, Tensor]:
        """What to log: tagged numbers, given the preferences [B, dim] of the context's users."""
        return {}

    def extend(self, catalogue: Catalogue) -> None:
        """Go on with a catalogue that has more arms or key-terms."""
        self.catalogue = catalogue
        self.changed()

    def changed(self) -> None:
        """Forget what was encoded before."""
        if any(known is not None for known in (self._table, self._terms, self._lengths)):
            self._table = self._terms = self._lengths = None

    def share(self, processes: Processes) -> None:
        """Exchange what is learned with other processes, over which users are split."""
        self.processes = processes

    def of(self, context: Context) -> Tensor:
        """[B, A, dim] of a context's candidates."""
        if context.has_own_features:
            return self._encoded(context.arm_features, context.arms)
        return look_up(self.arms(), context.arms)

    def candidates(self, context: Context) -> tuple[Tensor, Tensor]:
        """[n, dim] and [B, A]: what `of` gives, as a table and which of its rows the candidates are."""
        return as_table(self.of(context)) if context.has_own_features else (self.arms(), context.arms)

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, dim] of arms, by default of all N."""
        if self._table is None:
            every = self.catalogue.all_arms
            self._table = self._encoded(self.catalogue.arm_features, every).detach()
        return self._table if ids is EVERY_ROW else self._table[ids]

    def lengths(self) -> Tensor | None:
        """[N] how long the vectors of all arms are; None: that changes with every observation."""
        if self._lengths is None and not self.steps_online:
            self._lengths = self.arms().norm(dim=1)
        return self._lengths

    def terms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, dim] `sum_a p_{a,k} phi_a` of key-terms, by default of all K."""
        if self._terms is None:
            self._terms = self.catalogue.average(self.arms())
        return self._terms if ids is EVERY_ROW else self._terms[ids]

    def _encoded(self, x: Tensor, arms: Tensor) -> Tensor:
        source, hint = f"{type(self).__name__}.encode", f"; {type(self).__name__}.dim is {self.dim}"
        return expect_tensor(source, self.encode(x, arms), (*arms.shape, self.dim), x.dtype, hint)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.changed()  # to another precision or device
        return super()._apply(*args, **kwargs)  # type: ignore[no-untyped-call]

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self.changed()
        super()._load_from_state_dict(*args, **kwargs)


class Observed(Representation):
    """The catalogue's features as they are."""

    draws = False

    def build(self, seed: int) -> None:
        """Nothing but the length."""
        self.dim = self.catalogue.dim

    def encode(self, x: Tensor, arms: Tensor) -> Tensor:
        """[..., D] x."""
        return x

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "encode" in vars(cls):
            raise TypeError(
                f"class {cls.__name__}(Observed): Observed shows the catalogue's features as they are, and "
                "does not call encode; derive from Representation, which does"
            )

    def of(self, context: Context) -> Tensor:
        """[B, A, D] the context's, which the environment looks up too: once for both."""
        return context.arm_features

    def arms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D] the catalogue's."""
        return self.catalogue.arm_features if ids is EVERY_ROW else self.catalogue.arms(ids)

    def terms(self, ids: Index = EVERY_ROW) -> Tensor:
        """[n, D] the catalogue's."""
        return self.catalogue.terms(ids)

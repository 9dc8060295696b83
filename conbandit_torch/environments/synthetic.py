"""The paper's synthetic data."""

from __future__ import annotations

import torch
from torch import Tensor

from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.checks import expect_memory
from conbandit_torch.core.randomness import Stream
from conbandit_torch.environments.answers import AnswerModel, ItemMean
from conbandit_torch.environments.delays import Delay
from conbandit_torch.environments.drawn import Drawn
from conbandit_torch.environments.drift import Drift
from conbandit_torch.environments.simulated import FeedbackKind


class Synthetic(Drawn):
    """Users, arms and key-terms drawn as in [Zhang20], Section 5.

    Rule: every coordinate of a key-term's pseudo-feature is U(-1, 1). Arm a has n_a distinct key-terms,
    n_a uniform in 1 .. M, with weight 1/n_a each; every coordinate of x_a is normal around the mean of
    its key-terms' pseudo-features. Every coordinate of a user's theta is U(-1, 1).
    Symbols: M `max_terms`, sigma_g `spread`.
    Differs: a key-term that no arm drew is left out (there is none at the paper's sizes).

    Args:
        users: U.
        arms: N.
        terms: K.
        dim: D.
        pool: candidates per user and round, drawn without replacement.
        max_terms: M, most key-terms an arm can have.
        spread: sigma_g, standard deviation of an arm around its key-terms.
        noise: standard deviation of the rewards' and answers' noise.
        feedback: "linear", "binary" (Eq. 5) or "logistic".
        scale: how steep the probabilities of logistic feedback are.
        answers: how people answer questions.
        normalise: scale arms' features and users' preferences to length 1.
        users_per_round: how many users come each round; None: all.
        hidden: how many of the features, drawn at random, policies do not see; or the names of which.
        hidden_seed: seed of that draw; None: `data_seed`; if that is None too, `seed`.
        balance_hidden: of many draws, take one whose share of `|x|^2` is close to its share of the features.
        delay: how many rounds after a decision its reward comes; None: in the same round.
        drift: how the users' preferences change; None: they do not.
        data_seed: seed of arms, key-terms and users; None: `seed`.
        seed: seed of everything else (visitors, pools, noise, drift).
    """

    def __init__(
        self,
        users: int = 200,
        arms: int = 5000,
        terms: int = 500,
        dim: int = 50,
        *,
        pool: int = 50,
        max_terms: int = 5,
        spread: float = 0.1,
        noise: float = 0.1,
        feedback: FeedbackKind = "linear",
        scale: float = 1.0,
        answers: AnswerModel = ItemMean(),
        normalise: bool = False,
        users_per_round: int | None = None,
        hidden: int | list[str] = 0,
        hidden_seed: int | None = None,
        balance_hidden: bool = False,
        delay: Delay | None = None,
        drift: Drift | None = None,
        data_seed: int | None = None,
        seed: int = 0,
    ) -> None:
        sizes = {"users": users, "arms": arms, "terms": terms, "dim": dim, "max_terms": max_terms}
        for name, value in sizes.items():
            if value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        if max_terms > terms:
            raise ValueError(f"max_terms must be at most the {terms} terms, got {max_terms}")
        if not 0 <= spread < float("inf"):
            raise ValueError(f"spread must be a number of at least 0, got {spread}")
        # What is sure to be needed, in float64: theta and the features; and the arms' key-terms.
        rows = users + arms + terms
        candidates = pool * (users if users_per_round is None else users_per_round)
        what = f"a world of {users:,} users and {arms:,} arms with {dim} features"
        expect_memory(what, 8 * (dim * rows + arms * max_terms + candidates))
        data_seed = seed if data_seed is None else data_seed

        def draw(purpose: str) -> Stream:
            return Stream(data_seed, f"synthetic {purpose}")

        arm_ids, term_ids, user_ids = (torch.arange(n) for n in (arms, terms, users))
        pseudo = 2 * draw("terms").uniform(term_ids, 0, dim) - 1  # [K, D]
        counts = 1 + draw("term counts").integers(arm_ids, 0, 1, max_terms)  # [N, 1]
        drawn = draw("term sets").subsets(arm_ids, 0, max_terms, terms)  # [N, M]
        has = torch.arange(max_terms) < counts  # [N, M] the first n_a of the draws count
        features = pseudo.new_empty(arms, dim)
        for block in arm_ids.split(rows_per_block(4 * (max_terms + 2) * dim)):
            own = slice(int(block[0]), int(block[-1]) + 1)
            mean = (pseudo[drawn[own]] * has[own, :, None]).sum(1) / counts[own]  # [n, D]
            rows_drawn = mean + spread * draw("arms").normal(block, 0, dim)
            features[own] = _unit(rows_drawn) if normalise else rows_drawn
        theta = 2 * draw("users").uniform(user_ids, 0, dim) - 1
        if normalise:
            theta = _unit(theta)

        used, columns = drawn[has].unique(return_inverse=True)
        edges = torch.stack((has.nonzero()[:, 0], columns))
        weights = (1 / counts).expand_as(has)[has].double()
        graph = torch.sparse_coo_tensor(edges, weights, (arms, len(used)), check_invariants=False)
        catalogue = Catalogue(features, graph, term_names=[f"term {k}" for k in used.tolist()])
        super().__init__(
            catalogue,
            theta,
            pool=pool,
            noise=noise,
            feedback=feedback,
            scale=scale,
            answers=answers,
            users_per_round=users_per_round,
            hidden=hidden,
            delay=delay,
            drift=drift,
            hidden_seed=data_seed if hidden_seed is None else hidden_seed,
            balance_hidden=balance_hidden,
            seed=seed,
        )


def _unit(rows: Tensor) -> Tensor:
    return torch.nn.functional.normalize(rows, dim=1)

"""The log as a least-squares problem in what a representation learns."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.linalg import vecdot

from conbandit_torch.core.blocks import rows_per_block
from conbandit_torch.core.catalogue import Catalogue, Edges
from conbandit_torch.core.processes import Processes
from conbandit_torch.core.questions import About, Arms, Comparison, Terms
from conbandit_torch.models.history import LINEAR, Observations
from conbandit_torch.models.links import Link


@dataclass(frozen=True)
class Sums:
    """What the log says of learned features v_q of Q distinct things, at the users' present theta.

    The squared error of the log is `sum_q (v_q^T H_q v_q - 2 d_q^T v_q)` and a constant. With a link that is
    not linear it is that of the link's Newton step, see `Summary.sums`.

    Attributes:
        gram: [Q, L, L] float64, H_q = sum theta^v theta^v^T over the observations of thing q.
        moment: [Q, L] float64, d_q = sum theta^v (value - x_q^T theta^x).
        constant: [] float64, sum (value - x_q^T theta^x)^2.
        number: [] float64, how many observations there are.
    """

    gram: Tensor
    moment: Tensor
    constant: Tensor
    number: Tensor

    def error(self, learned: Tensor) -> Tensor:
        """[] the mean squared error of the log, if the things' learned features are v [Q, L]."""
        square = (torch.bmm(self.gram, learned.unsqueeze(2)).squeeze(2) * learned).sum()
        total = square - 2 * (self.moment * learned).sum() + self.constant
        return total / self.number.clamp_min(1)


class Summary:
    """Every distinct thing in the log, with its weights over arms, and sums of the log's observations.

    Thousands of observations of one arm, by users of one theta each, are one matrix H and one vector d of it:
    whatever is learned of the arms is fitted to these, in time that does not grow with the log. Processes,
    each of which has a log of its own users, sum them up, and so learn the same.

    Args:
        observations: the log.
        catalogue: arms and key-terms.
        processes: over which users are split.
    """

    def __init__(self, observations: list[Observations], catalogue: Catalogue, processes: Processes) -> None:
        self._observations, self._catalogue, self._processes = observations, catalogue, processes
        most = max(catalogue.num_arms, catalogue.num_terms) + 1
        keys = [_key(seen.about, most) for seen in observations]
        own = [key.unique(return_inverse=True) for key in keys]
        nothing = torch.zeros(0, dtype=torch.int64, device=catalogue.arm_features.device)
        (every,) = processes.gather(torch.cat([nothing, *(distinct for distinct, _ in own)]))
        every = every.unique()  # [Q] of all processes
        self._things = [torch.searchsorted(every, distinct)[group] for distinct, group in own]  # [E] each
        self._users = [seen.users.unique(return_inverse=True) for seen in observations]
        self._observed: list[Tensor] = []  # [n, D] features of things of one kind, in the order of `every`
        parts: list[Edges] = []
        first = 0
        for about in _abouts(every, most):
            edges = about.edges(catalogue)
            parts.append(edges._replace(owner=edges.owner + first))
            self._observed.append(about.features(catalogue))
            first += len(about)
        self.size = first
        self.edges = Edges(*(torch.cat(column) for column in zip(*parts, strict=True))) if parts else None

    def sums(self, width: int, link: Link = LINEAR, present: Tensor | None = None) -> Sums:
        """Sums with the users' present theta, whose last `width` entries belong to what is learned.

        With a link that is not linear, they are of its Newton steps (`Link.weigh`) at the scores that present
        learned features [Q, width] have: `s theta^v` takes the place of theta^v, and what it explains is
        `rho + s v_q^T theta^v`.
        """
        like = self._catalogue.arm_features
        total = like.new_zeros(self.size, width * (width + 1), dtype=torch.float64)
        constant = like.new_zeros(2, dtype=torch.float64)
        observed = torch.cat(self._observed) if self._observed else like[:0]  # [Q, D]
        rows = rows_per_block(like.shape[1] + width * (width + 1))
        for seen, things, (users, position) in zip(
            self._observations, self._things, self._users, strict=True
        ):
            theta = seen.theta(users)  # [n, D + L]
            tastes, learned = theta.split((theta.shape[1] - width, width), dim=1)
            for start in range(0, len(position), rows):
                block = slice(start, start + rows)
                who, what = position[block], things[block]
                own, left = learned[who], seen.values[block]  # [e, L], [e]
                known = vecdot(observed[what], tastes[who]) if tastes.shape[1] else torch.zeros_like(left)
                if link.is_linear or present is None:
                    left = left - known
                else:
                    v = present[what].to(own)
                    factor, left = link.weigh(seen.about.take(block), known + vecdot(v, own), left)
                    own = factor[:, None] * own
                    left = left + vecdot(v, own)
                both = (own[:, :, None] * torch.cat((own, left[:, None]), dim=1)[:, None]).flatten(1)
                total.index_add_(0, what, both.double())
                constant += torch.stack((left.double().square().sum(), constant.new_tensor(len(left))))
        total, constant = self._processes.sum(total), self._processes.sum(constant)
        gram, moment = total.view(-1, width, width + 1).split((width, 1), dim=2)
        return Sums(gram.contiguous(), moment.squeeze(2), constant[0], constant[1])

    def weights(self) -> Tensor:
        """[Q, N] sparse, float64: the weights over arms of everything that was observed."""
        size = (self.size, self._catalogue.num_arms)
        if self.edges is None:
            nothing: Tensor = torch.zeros(size, dtype=torch.float64).to_sparse_coo()
            return nothing
        places = torch.stack((self.edges.owner, self.edges.target))
        values = self.edges.weight.double()
        found: Tensor = torch.sparse_coo_tensor(places, values, size, check_invariants=False)
        return found


def _key(about: About, most: int) -> Tensor:
    """[E] one number for the kind of a thing and the one or two ids that name it."""
    sides = about.sides()
    code = (type(sides[0]) is Terms) + 2 * (len(sides) == 2)
    second = sides[1].of + 1 if len(sides) == 2 else 0
    return (code * most + sides[0].of) * most + second


def _abouts(keys: Tensor, most: int) -> list[About]:
    """What sorted keys [Q] stand for, a kind at a time, in the order of the keys."""
    found: list[About] = []
    codes = keys // most // most
    for code in codes.unique().tolist():
        own = keys[codes == code]
        side = (Arms, Terms)[code % 2]
        about: About = side(own // most % most)
        if code >= 2:
            about = Comparison(side(own // most % most), side(own % most - 1))
        found.append(about)
    return found

"""Off-policy estimates: what a policy would have earned, from a log of another policy's decisions.

Arrays in, numbers out; no torch and no environment. `advise` says which estimate is right for which log.
`conbandit report` shows them for a replay whose log has propensities, from the sums per user that it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conbandit_torch.core.serving import Serving
from conbandit_torch.results.over_users import Estimate, Ratio
from conbandit_torch.running.user_sums import UserSums

FEW = 100  # an effective sample, or clicks of one, below which an estimate tells next to nothing

ESTIMATORS = {
    "replay": ("clicks", "counted"),
    "IPS": ("earned", "events"),
    "self-normalised IPS": ("earned", "weight"),
    "doubly robust": ("robust", "events"),
}
"""Which sums of `UserSums` each estimate of a replayed log divides."""


@dataclass(frozen=True)
class LoggedDecisions:
    """Events of a log, and what the policy to be judged would have done in them.

    Attributes:
        reward: [n] what the served item earned.
        propensity: [n] probability with which the log's own policy served that item, p(a|x).
        probability: [n] probability with which the judged policy would have shown it, pi(a|x); 1 or 0 if it
            does not draw.
        user: [n] whose event it is. Events of one user are not independent, so intervals are over users.
            None: every event is of another user.
        predicted: [n] a model's guess of the served item's reward, q(x, a); for `doubly_robust`. The model
            must not have seen these events.
        predicted_of_policy: [n] the model's guess of what the judged policy earns, sum_a pi(a|x) q(x, a).
    """

    reward: np.ndarray
    propensity: np.ndarray
    probability: np.ndarray
    user: np.ndarray | None = None
    predicted: np.ndarray | None = None
    predicted_of_policy: np.ndarray | None = None

    def __post_init__(self) -> None:
        if np.ndim(self.reward) != 1 or not len(self.reward):
            raise ValueError(f"reward must be [n] with n of at least 1, got shape {np.shape(self.reward)}")
        for name in ("propensity", "probability", "user", "predicted", "predicted_of_policy"):
            values = getattr(self, name)
            if values is not None and np.shape(values) != np.shape(self.reward):
                raise ValueError(
                    f"{name} must be [n] like reward {np.shape(self.reward)}, got {np.shape(values)}"
                )
            numbers = name != "user" or np.issubdtype(np.asarray(values).dtype, np.floating)
            if values is not None and numbers and not np.isfinite(values).all():
                raise ValueError(f"{name} holds NaN or infinity")
        if not np.isfinite(self.reward).all():
            raise ValueError("reward holds NaN or infinity")
        if not ((self.propensity > 0) & (self.propensity <= 1)).all():
            event = int(np.flatnonzero(~((self.propensity > 0) & (self.propensity <= 1)))[0])
            raise ValueError(
                f"propensity must be above 0 and at most 1, got {self.propensity[event]} at event {event}: "
                "what was served had a chance to be served"
            )
        if not ((self.probability >= 0) & (self.probability <= 1)).all():
            raise ValueError("probability must be from 0 to 1")

    @property
    def weight(self) -> np.ndarray:
        """[n] w = pi(a|x) / p(a|x)."""
        weight: np.ndarray = self.probability / self.propensity
        return weight

    def per_user(self, values: np.ndarray) -> np.ndarray:
        """[U] sums of values [n] per user."""
        if self.user is None:
            return values
        return np.bincount(np.unique(self.user, return_inverse=True)[1], weights=values)

    @property
    def effective_sample(self) -> float:
        """(sum w)^2 / sum w^2: as many events of the judged policy itself would tell as much."""
        total = float(np.square(self.weight).sum())
        return float(self.weight.sum()) ** 2 / total if total else 0.0


def ips(log: LoggedDecisions) -> Estimate:
    """Inverse propensity score: mean(w r). Unbiased if the propensities are right."""
    return _over_users("IPS", log, log.weight * log.reward, np.ones_like(log.weight))


def self_normalised(log: LoggedDecisions) -> Estimate:
    """sum(w r) / sum(w): slightly biased, less spread; NaN if the policy shows nothing that was served.

    On a log of uniform servings, and for a policy that does not draw, this is the share of clicks among the
    events in which both agree, which is what replay counts.
    """
    return _over_users("self-normalised IPS", log, log.weight * log.reward, log.weight)


def doubly_robust(log: LoggedDecisions) -> Estimate:
    """mean(q(x, pi) + w (r - q(x, a))): unbiased if the propensities are right, or else the model is."""
    if log.predicted is None or log.predicted_of_policy is None:
        raise ValueError("doubly_robust needs predicted and predicted_of_policy, a model's guesses")
    terms = log.predicted_of_policy + log.weight * (log.reward - log.predicted)
    return _over_users("doubly robust", log, terms, np.ones_like(terms))


def _over_users(name: str, log: LoggedDecisions, above: np.ndarray, below: np.ndarray) -> Estimate:
    return Ratio.of(*(log.per_user(values)[None] for values in (above, below))).named(name)


@dataclass(frozen=True)
class OffPolicy:
    """What a log says of a policy that was not the log's own.

    Attributes:
        estimates: of the mean reward per event, one per estimator.
        effective_sample: (sum w)^2 / sum w^2: as many events of the policy itself would tell as much.
        advice: which estimate is right for this log, and what to beware of, in sentences for people.
    """

    estimates: list[Estimate]
    effective_sample: float
    advice: list[str]

    def __str__(self) -> str:
        lines = [f"{one.name}: {one}" for one in self.estimates]
        return "\n".join([*lines, f"effective sample: {self.effective_sample:,.0f}", *self.advice])


def off_policy(log: LoggedDecisions, *, propensities_are_known: bool = True) -> OffPolicy:
    """All estimates that the log allows, with intervals over users, and which of them to believe.

    Args:
        log: the events.
        propensities_are_known: False where they were assumed, as in a log of ratings.
    """
    estimates = [ips(log), self_normalised(log)]
    if log.predicted is not None and log.predicted_of_policy is not None:
        estimates.append(doubly_robust(log))
    return OffPolicy(
        estimates, log.effective_sample, advise(log, propensities_are_known=propensities_are_known)
    )


def off_policy_of_replay(sums: list[UserSums], serving: Serving, *, same_users: bool) -> OffPolicy:
    """The estimates of a policy that played a log again, as a mean over seeds.

    The policy learns while it plays: what is estimated is what its decisions were worth, over all events that
    it decided in, whether they counted or not.

    Args:
        sums: what each seed's replay gave, user by user.
        serving: how the log's items were chosen.
        same_users: whether all seeds replayed the same log.
    """
    table = {name: np.stack([getattr(one, name) for one in sums]) for name in vars(sums[0])}  # [S, U] each
    weighted = bool(table["weight"].any())
    over = ESTIMATORS if weighted else {"replay": ESTIMATORS["replay"]}
    ratios = {
        name: Ratio.of(table[above], table[below], same_users=same_users)
        for name, (above, below) in over.items()
    }
    total, squares = table["weight"].sum(1), table["square"].sum(1)  # [S]
    counted = float(table["counted"].sum(1).mean())
    effective = float((total**2 / squares).mean()) if weighted and squares.all() else counted
    known = Ratio.of(table["weight"], table["events"], same_users=same_users) if weighted else None
    advice = _sentences(
        serving, effective, int(table["events"].sum(1).mean()), int(table["clicks"].sum(1).mean()), known
    )
    return OffPolicy([ratio.named(name) for name, ratio in ratios.items()], effective, advice)


def advise(log: LoggedDecisions, *, propensities_are_known: bool = True) -> list[str]:
    """Which estimate is right for this log, and what to beware of, in sentences for people.

    Args:
        log: the events.
        propensities_are_known: False where they were assumed, as in a log of ratings.
    """
    uniform = float(np.ptp(log.propensity)) <= 1e-6 * float(log.propensity.max())
    serving: Serving = "unknown" if not propensities_are_known else "uniform" if uniform else "skewed"
    clicks = int(np.count_nonzero(log.reward[log.probability > 0]))
    weights = Ratio.of(log.weight[None], np.ones_like(log.weight)[None])
    return _sentences(serving, log.effective_sample, len(log.reward), clicks, weights)


_OF_SERVING: dict[Serving, str] = {
    "unknown": "Nobody knows how items came to be served here: no estimate is unbiased. Compare policies on "
    "this log by replay, and read nobody's true rate from it.",
    "uniform": "Items were served uniformly at random: replay and the self-normalised estimate are right, "
    "and need no model.",
    "skewed": "Items were served at random, some more often than others: replay is biased. Use doubly robust "
    "if there is a model, self-normalised IPS otherwise.",
}


def _sentences(
    serving: Serving, effective: float, events: int, clicks: int, weights: Ratio | None
) -> list[str]:
    """What to believe; `clicks` are of events that agree with the policy, `weights` the mean of w."""
    lines = [_OF_SERVING[serving]]
    if not effective:
        lines.append("The policy shows nothing that was served: this log says nothing of it.")
    elif effective < FEW:
        lines.append(
            f"The effective sample is {effective:.0f} of {events:,} events: the log is too small, or the "
            "policy too different from the log's own, to tell."
        )
    elif clicks < FEW:
        lines.append(f"Only {clicks} rewarded events agree with the policy: too few to tell.")
    if weights is not None and abs(weights.value - 1) > 5 * weights.error + 1e-9:
        lines.append(
            f"The weights' mean is {weights.value:.2f}, where right propensities give 1: they are wrong, or "
            "the policy shows items that the log's own never served."
        )
    return lines

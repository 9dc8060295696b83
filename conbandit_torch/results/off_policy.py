"""Off-policy estimates: what a policy would have earned, from a log of another policy's decisions.

Arrays in, numbers out; no torch and no environment. `advise` says which estimate is right for which log.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FEW = 100  # an effective sample, or clicks of one, below which an estimate tells next to nothing


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

    @property
    def effective_sample(self) -> float:
        """(sum w)^2 / sum w^2: as many events of the judged policy itself would tell as much."""
        total = float(np.square(self.weight).sum())
        return float(self.weight.sum()) ** 2 / total if total else 0.0


@dataclass(frozen=True)
class Estimate:
    """A mean reward per event.

    Attributes:
        name: of the estimator.
        value: the estimate.
        error: its standard error, over users; NaN where there are fewer than two, or where they do not differ
            (no clicks, or one user alone has events that count), so that nothing is known of the spread.
        half: half-width of its 95 % t interval.
    """

    name: str
    value: float
    error: float
    half: float

    def __str__(self) -> str:
        return f"{self.value:.4f}" if np.isnan(self.half) else f"{self.value:.4f} ± {self.half:.4f}"


def ips(log: LoggedDecisions) -> Estimate:
    """Inverse propensity score: mean(w r). Unbiased if the propensities are right."""
    return ratio("IPS", log.weight * log.reward, np.ones_like(log.weight), log.user)


def self_normalised(log: LoggedDecisions) -> Estimate:
    """sum(w r) / sum(w): slightly biased, less spread; NaN if the policy shows nothing that was served.

    On a log of uniform servings, and for a policy that does not draw, this is the share of clicks among the
    events in which both agree, which is what replay counts.
    """
    return ratio("self-normalised IPS", log.weight * log.reward, log.weight, log.user)


def doubly_robust(log: LoggedDecisions) -> Estimate:
    """mean(q(x, pi) + w (r - q(x, a))): unbiased if the propensities are right, or else the model is."""
    if log.predicted is None or log.predicted_of_policy is None:
        raise ValueError("doubly_robust needs predicted and predicted_of_policy, a model's guesses")
    terms = log.predicted_of_policy + log.weight * (log.reward - log.predicted)
    return ratio("doubly robust", terms, np.ones_like(terms), log.user)


def ratio(name: str, above: np.ndarray, below: np.ndarray, user: np.ndarray | None = None) -> Estimate:
    """sum(above) / sum(below) with an error over users, by the delta method.

    With R the ratio and e_u = sum over u's events of (above - R below), its variance is
    U / (U - 1) sum_u e_u^2 / sum(below)^2.
    """
    from scipy.special import stdtrit  # scipy.stats takes half a second to import

    total = float(below.sum())
    if not total:
        return Estimate(name, float("nan"), float("nan"), float("nan"))
    value = float(above.sum()) / total
    rest: np.ndarray = above - value * below
    if user is not None:
        rest = np.bincount(np.unique(user, return_inverse=True)[1], weights=rest)  # [U]
    users = len(rest)
    if users < 2 or np.abs(rest).max() <= 1e-12 * np.abs(above).sum():
        return Estimate(name, value, float("nan"), float("nan"))
    error = float(np.sqrt(users / (users - 1) * np.square(rest).sum())) / total
    return Estimate(name, value, error, float(stdtrit(users - 1, 0.975)) * error)


def advise(log: LoggedDecisions, *, propensities_are_known: bool = True) -> list[str]:
    """Which estimate is right for this log, and what to beware of, in sentences for people.

    Args:
        log: the events.
        propensities_are_known: False where they were assumed, as in a log of ratings.
    """
    uniform = float(np.ptp(log.propensity)) <= 1e-6 * float(log.propensity.max())
    lines = []
    if not propensities_are_known:
        lines.append(
            "Nobody knows how items came to be served here: no estimate is unbiased. Compare policies on "
            "this log by replay, and read nobody's true rate from it."
        )
    elif uniform:
        lines.append(
            "Items were served uniformly at random: replay and the self-normalised estimate are right, and "
            "need no model."
        )
    else:
        lines.append(
            "Items were served at random, some more often than others: replay is biased. Use doubly robust "
            "if there is a model, self-normalised IPS otherwise."
        )
    effective, matched = log.effective_sample, log.probability > 0
    if not matched.any():
        lines.append("The policy shows nothing that was served: this log says nothing of it.")
    elif effective < FEW:
        lines.append(
            f"The effective sample is {effective:.0f} of {len(log.reward):,} events: the log is too small, "
            "or the policy too different from the log's own, to tell."
        )
    elif (clicks := int(np.count_nonzero(log.reward[matched]))) < FEW:
        lines.append(f"Only {clicks} rewarded events agree with the policy: too few to tell.")
    if abs(float(log.weight.mean()) - 1) > 5 * float(log.weight.std() / np.sqrt(len(log.weight))) + 1e-9:
        lines.append(
            f"The weights' mean is {log.weight.mean():.2f}, where right propensities give 1: they are "
            "wrong, or the policy shows items that the log's own never served."
        )
    return lines

"""What every policy promises: `check_policy(MyBandit)` checks all of it.

Each promise is a function, in `CHECKS`, so that a test can run every check on every policy:

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check):
        check(MyBandit, alpha=0.5)
"""

from __future__ import annotations

from typing import Any

from conbandit_torch.testing.harness import Check, ContractError, Decisions, Make, decisions
from conbandit_torch.testing.promises import CHECKS

__all__ = ["CHECKS", "Check", "ContractError", "Decisions", "Make", "check_policy", "decisions"]


def check_policy(make: Make, **arguments: Any) -> list[str]:
    """Check that a policy keeps every promise; gives the promises, as they were checked.

    Args:
        make: the policy's class, or a function (catalogue, num_users, **arguments) that builds one.
        arguments: arguments of the policy; `seed` is given to every policy.

    Raises:
        ContractError: at the first promise that is broken.
    """
    for check in CHECKS:
        check(make, **arguments)
    return [(check.__doc__ or "").partition("\n")[0] for check in CHECKS]

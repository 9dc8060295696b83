"""How a log's items came to be served. Results are read without torch, so this module does not import it."""

from __future__ import annotations

from typing import Literal

Serving = Literal["unknown", "uniform", "skewed"]
"""Nobody knows; each candidate was as likely; or some were likelier, with known propensities."""

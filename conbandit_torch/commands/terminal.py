"""What commands print on: text as it is, without control characters, for as long as somebody reads it."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.text import Text

from conbandit_torch.core.errors import printable


class Terminal(Console):
    """Standard output, or standard error.

    Names come from configs and folders: an escape sequence in one is shown, never sent to the terminal.
    Once the reader of a pipe has gone, nothing is printed any more, and the work goes on.

    Args:
        stderr: print on standard error.
    """

    def __init__(self, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """The text, with control characters as Python writes them."""
        return super().render_str(printable(text), **how)

    def on_broken_pipe(self) -> None:
        """Print nothing more; the interpreter's last flush does not fail either."""
        self.quiet = True
        with open(os.devnull, "w") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), self.file.fileno())

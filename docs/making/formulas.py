"""Formulas, rendered by KaTeX while the site is built, as MathML, which browsers draw themselves.

So a page needs no script, no style sheet and no font of KaTeX's, from here or from elsewhere.
"""

from __future__ import annotations

import html
import re
from functools import cache

import pykatex

_FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)


def rendered(page: str) -> str:
    """The page with MathML in the place of LaTeX."""
    return _FORMULA.sub(lambda found: mathml(html.unescape(found[2])[2:-2], display=found[1] == "div"), page)


@cache
def mathml(latex: str, *, display: bool) -> str:
    """The formula as MathML; an error in it is an error of the build."""
    return str(pykatex.renderToString(latex, displayMode=display, output="mathml", throwOnError=True))


def is_rendered(latex: str) -> bool:
    """Whether KaTeX can draw the formula."""
    try:
        mathml(latex, display=True)
    except pykatex.ParseError:
        return False
    return True

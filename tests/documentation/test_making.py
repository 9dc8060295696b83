"""What generates pages: equations in ASCII become LaTeX, and results are those that were measured."""

import sys

import pytest

from tests.conftest import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "docs"))

from making.equations import latex, lines_of, pieces
from making.measured import measured


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("theta~ = M~^-1 b~", r"\tilde{\theta} = \tilde{M}^{-1} \tilde{b}"),
        ("x~_k^T theta", r"\tilde{x}_{k}^{\top} \theta"),
        ("|x|_{M^-1}", r"\lVert x\rVert _{M^{-1}}"),
        ("S |w_a|", r"S \lvert w_{a}\rvert"),
        ("C += theta^v theta^v^T", r"C \text{ += } \theta^{v} {\theta^{v}}^{\top}"),
        ("theta' ~ N(theta, v^2 M^-1)", r"\theta' \sim \mathcal{N}(\theta, v^{2} M^{-1})"),
        ("sum g^(t-s) r x", r"\sum g^{t-s} r x"),
        ("hidden_alpha I", r"\mathtt{hidden\_alpha} I"),
        ("after a reward: theta (Eq. 6)", r"\text{after a reward: }\theta \text{ (Eq. 6)}"),
        ("the user's log, log t", r"\text{the user's log, }\log t"),
    ],
)
def test_ascii_equations_become_latex(written, meant):
    assert latex(written) == meant


def test_two_spaces_after_a_comma_part_equations():
    assert lines_of(["    a = 1,  b = 2, c = 3;  d"]) == ["a = 1,", "b = 2, c = 3;", "d"]


def test_prose_is_cut_where_formulas_begin_and_end():
    text = "With phi_a = (x_a, v_a), the sum of all, after user u gave r:"
    assert [one for one, formula in pieces(text) if formula] == ["phi_a = (x_a, v_a)", "u", "r"]
    assert "".join(one for one, _ in pieces(text)) == text


def test_rows_are_found_under_their_headings_with_the_command(tmp_path):
    page = tmp_path / "RESULTS.md"
    page.write_text(
        "# Results\n\n## World\n\n### Tuned, and more\n\n```bash\nconbandit run x\n```\n\n"
        "| policy | regret |\n|---|---:|\n| Var-LCR | 1 |\n| LinUCB, greedy | 2 |\n| LinUCB | 3 |\n| Nobody | 4 |\n"
    )
    found = measured(page)
    assert set(found) == {"VarLCR", "LinUCB"}
    (one,) = found["LinUCB"]
    assert one.title == "World: Tuned, and more" and one.anchor == "tuned-and-more"
    assert one.rows == [["LinUCB, greedy", "2"], ["LinUCB", "3"]] and one.command == "conbandit run x"

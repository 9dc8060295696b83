"""Every block of code and every command in the README and in docs/ works as printed."""

import sys

import pytest

from conbandit_torch.commands.parser import build_parser
from tests.conftest import REPOSITORY
from tests.helpers.documents import (
    LANGUAGES,
    PAGES,
    blocks,
    check_yaml,
    commands,
    inline_commands,
    parse_command,
    run_command,
    try_block,
)

ALL = [block for page in PAGES for block in blocks(page)]
# The same lines on two pages are tried on the first.
FIRST = {block.code: block for block in reversed(ALL) if block.language == "python"}


def name(page):
    return page.relative_to(REPOSITORY).as_posix()


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name)
def test_the_blocks_of_a_page_work_in_their_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    known = set(sys.modules)
    if not any(made in block.code for block in blocks(page) for made in ("--out DIR", '.run("DIR")')):
        run_command(["conbandit", "run", "quickstart", "--out", "DIR.first"])
        (tmp_path / "DIR.first").rename("DIR")
    for block in sorted(blocks(page), key=lambda one: one.file is None):  # files first
        if block.language != "python" or FIRST[block.code] == block:
            try:
                try_block(block, tmp_path)
            except Exception as error:
                raise AssertionError(f"{block}: {error}") from error
    for one in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[one], "__file__", None)):
            del sys.modules[one]


@pytest.mark.parametrize("page", [page for page in PAGES if inline_commands(page)], ids=name)
def test_commands_within_sentences_are_understood(page):
    for command in inline_commands(page):
        for words in commands(command):
            if words[0] == "conbandit" and is_only_named(words):
                assert words[1] in build_parser().format_help(), command
            elif not is_only_named(words):
                parse_command(words)


def is_only_named(words):
    """Whether a sentence speaks of a command without all its arguments: `conbandit tune`, `conbandit run ...`."""
    whole = any(one.startswith("-") or one.isupper() for one in words[3:]) or len(words) > 3
    return "..." in words or "--KEY" in words or not whole


def test_every_block_says_its_language():
    assert len(ALL) > 60
    assert [str(block) for block in ALL if block.language not in LANGUAGES] == []


def test_few_blocks_are_not_run():
    own = [block for block in ALL if "RESULTS" not in block.page.name and block.language != "text"]
    assert sum(block.how != "run" for block in own) < len(own) / 3


@pytest.mark.parametrize(
    "wrong",
    [
        "conbandit runn quickstart",
        "conbandit run no_such_config",
        "conbandit run quickstart --polices.ConUCB.init_args.mix 0.5",
        "python experiments/paper.py regrets --out DIR",
        "python experiments/no_such_script.py",
        'pip install -e ".[no_such_extra]"',
        "no_such_program",
    ],
)
def test_a_wrong_command_is_noticed(wrong):
    (words,) = commands(wrong)
    with pytest.raises((SystemExit, Exception)):
        parse_command(words)


@pytest.mark.parametrize("wrong", ["policies: {A: NoSuchPolicy}", "rounds: many", "no_such_key: 1"])
def test_a_wrong_config_is_noticed(wrong):
    with pytest.raises(Exception, match="expected|unknown"):
        check_yaml(wrong)

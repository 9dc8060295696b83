"""The blocks of code in the documentation, and how each is tried.

A block is run as a reader would run it: all blocks of a page, in their order, in one empty folder. Commands run at
small sizes. A comment above a block says why it is only parsed, or not run at all:

    <!-- parsed, not run: needs the files of MovieLens -->
    <!-- not run: opens a browser -->
"""

import argparse
import contextlib
import io
import re
import runpy
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import yaml

from conbandit_torch.commands.main import main
from conbandit_torch.commands.overrides import read_overrides
from conbandit_torch.commands.parser import build_parser
from conbandit_torch.configuration.load import read, resolve
from conbandit_torch.configuration.packaged import find_config
from tests.conftest import REPOSITORY
from tests.helpers.configs import GOOD

HOURS = REPOSITORY / "experiments" / "RESULTS.md"  # its commands take hours: they are parsed
PAGES = [
    REPOSITORY / "README.md",
    *sorted(path for path in (REPOSITORY / "docs").rglob("*.md")),
    REPOSITORY / "CONTRIBUTING.md",
    HOURS,
]
SMALL = {"users": 5, "arms": 60, "terms": 12, "dim": 6, "pool": 5, "events": 40}
LANGUAGES = {"python", "yaml", "bash", "text"}

_BLOCK = re.compile(
    r"(?:^<!-- (parsed, not run|not run): ([^\n]+) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A block of code: where it stands, its language and text, and how it is tried."""

    page: Path
    line: int
    language: str
    code: str
    how: str  # "run", "parsed, not run" or "not run"

    @property
    def file(self):
        """The name that its first line gives it, if it is a file to write."""
        found = re.match(r"# ([\w.]+\.(?:py|yaml))$", self.code.partition("\n")[0])
        return found and found[1]

    def __str__(self):
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def blocks(page):
    """The page's blocks, in order."""
    text = page.read_text(encoding="utf-8")
    usual = "parsed, not run" if page == HOURS else "run"
    return [
        Block(page, text[: one.start()].count("\n") + 1, one[3], one[4], one[1] or usual)
        for one in _BLOCK.finditer(text)
    ]


def inline_commands(page):
    """Commands within sentences: `conbandit ...` and `python ...`."""
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"`((?:conbandit|python) [^`\n]+)`", text)


def try_block(block, folder):
    """Run or parse one block in the current folder, which is `folder`."""
    if block.file:
        (folder / block.file).write_text(block.code, encoding="utf-8")
    elif block.how == "not run" or block.language == "text":
        return
    elif block.language == "python":
        _run_python(block, folder)
    elif block.language == "yaml":
        check_yaml(block.code)
    else:
        for words in commands(block.code):
            parse_command(words) if block.how.startswith("parsed") else run_command(words)


def commands(code):
    """The words of every command; `&&` parts two, a backslash joins lines, comments are left out."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words:
            while re.match(r"[A-Z_]+=", words[0]):  # a variable for this command alone
                del words[0]
            end = words.index("&&") if "&&" in words else len(words)
            yield words[:end]
            words = words[end + 1 :]


def run_command(words):
    """Run a command of the program at small sizes."""
    assert words[0] == "conbandit", f"say above the block why it is not run: {shlex.join(words)}"
    with mock.patch.object(sys, "path", list(sys.path)):
        assert main([*words[1:], *_small(words)]) == 0, shlex.join(words)


def parse_command(words):
    """Check that a command's program takes its arguments, and that what it names is there."""
    program, *rest = words
    if program == "torchrun":
        program, rest = "conbandit", rest[rest.index("conbandit_torch") + 1 :]
    if program == "conbandit":
        options, more = build_parser().parse_known_args(rest)
        pairs = read_overrides(options, more)
        config = getattr(options, "config", None)
        if (
            options.command in ("run", "tune")
            and config.name.isupper() is False
            and config.parts[0] != "TUNED"
        ):
            read(find_config(config), pairs)
    elif program == "python":
        _parse_script(rest)
    elif program == "pip":
        _parse_install(rest)
    else:
        assert program in ("export", "pytest", "git", "mkdocs", "ruff", "mypy"), (
            f"unknown program: {shlex.join(words)}"
        )


def check_yaml(code):
    """Check the lines of a config: with the rest of a small config they describe an experiment."""
    lines = yaml.safe_load(code)
    tune = lines.pop("tune", None)
    callbacks = lines.pop("callbacks", {})
    assert all(
        re.fullmatch(r"[\w.]+", one if isinstance(one, str) else one["class_path"])
        for one in callbacks.values()
    )
    resolve(GOOD | lines, Path("block.yaml"))
    if tune is not None:
        assert set(tune) <= {"seeds", "space", "start"} and tune["space"]


def _run_python(block, folder):
    (folder / "tests").symlink_to(REPOSITORY / "tests") if not (folder / "tests").exists() else None
    path = folder / f"block{block.line}.py"
    path.write_text(block.code, encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), mock.patch.object(sys, "path", [str(folder), *sys.path]):
        runpy.run_path(str(path))
    promised = re.findall(r"^print\(.*\)  # (.+)$", block.code, re.MULTILINE)
    if promised:
        assert out.getvalue().splitlines() == promised, f"{block} prints {out.getvalue()!r}"
    elif "print(" in block.code:
        assert out.getvalue().strip(), f"{block} prints nothing"


def _small(words):
    """Arguments that make a command quick."""
    if words[1] not in ("run", "tune"):
        return []
    config = build_parser().parse_known_args(words[1:])[0].config
    given = yaml.safe_load(find_config(config).read_text(encoding="utf-8"))
    sizes = given["environment"].get("init_args", {}) if isinstance(given["environment"], dict) else {}
    more = ["--rounds", "6", "--threads", "1"] if given["rounds"] != "all" else ["--threads", "1"]
    more += ["--seeds", "0-1"] if words[1] == "run" else ["--trials", "2", "--jobs", "1"]
    for key, value in SMALL.items():
        if key in sizes:
            more += [f"--environment.init_args.{key}", str(value)]
    return more


def _parse_script(rest):
    """Let a script of experiments/ read its arguments, and end there."""

    class ParsedError(Exception):
        pass

    def parse(self, arguments=None, namespace=None, *, plain=argparse.ArgumentParser.parse_args):
        plain(self, arguments, namespace)
        raise ParsedError

    module = rest[1] if rest[0] == "-m" else rest[0].removesuffix(".py").replace("/", ".")
    arguments = rest[2:] if rest[0] == "-m" else rest[1:]
    path = (REPOSITORY / module.replace(".", "/")).with_suffix(".py")
    assert path.exists(), module
    if "parse_args" not in path.read_text(encoding="utf-8"):
        assert not arguments, f"{module} takes no arguments"
        return
    with (
        mock.patch.object(sys, "argv", [module, *arguments]),
        mock.patch.object(argparse.ArgumentParser, "parse_args", parse),
        contextlib.suppress(ParsedError),
    ):
        runpy.run_path(str(path), run_name="__main__")
        raise AssertionError(f"{module} read no arguments")


def _parse_install(rest):
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    extras = set(re.findall(r"^(\w+) = \[", section, re.MULTILINE))
    for names in re.findall(r"\[([\w,]+)\]", " ".join(rest)):
        assert set(names.split(",")) <= extras, names

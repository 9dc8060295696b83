"""conbandit chat: a person at a terminal."""

import os
import re
import sys
from io import StringIO

import pytest

from conbandit_torch.commands.main import main
from tests.helpers.person import FILMS, PEOPLE

CHAT = ["-m", "conbandit_torch", "chat"]


@pytest.fixture
def piped(tmp_path, monkeypatch, capsys):
    """A function from lines that come from a pipe to what the command prints."""
    monkeypatch.chdir(tmp_path)

    def chat(lines, *arguments):
        monkeypatch.setattr(sys, "stdin", StringIO("".join(f"{line}\n" for line in lines)))
        assert main(["chat", *arguments]) == 0
        return capsys.readouterr().out

    return chat


def plain(text):
    """What a terminal shows, without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def shown_in(text):
    """The films of the last slate, in order."""
    slate = plain(text).rpartition("I would show you:")[2]
    found = []
    for line in slate.splitlines():
        numbered = re.match(r"\s+(\d)\s+(\S.*)", line)
        if numbered:
            title = re.split(r"\s{2,}", numbered[2])[0]  # a long one goes on in the next line
            of = [name for name in FILMS.names if title.startswith(name) or name.startswith(title)]
            found.append(max(of, key=len))
    return found


def test_it_works_from_a_pipe_and_goes_on_where_it_was(piped):
    first = piped(["y", "1 2", "?"], "--user", "ann")
    assert "279 items with 40 key-terms · you are ann · ConUCB recommends" in first
    assert "Do you like films based on a book?" in first and "What I believe so far" in first
    assert "Kept in people/films" in first
    second = piped([], "--user", "ann")
    assert "Welcome back: 1 answers and 3 rated items are kept." in second
    question = re.findall(r"Do you like (.*)\?", first)[-1]
    assert f"Do you like {question}?" in second  # the open question comes again
    assert "Welcome back" not in piped([], "--user", "bob")


def test_what_it_does_not_understand_changes_nothing(piped):
    printed = piped(["maybe", "w 7", "y", "9", "w 1", "", "q"])
    assert "Please answer with one of: y, n, b, d." in printed
    assert "There is no such item on the table." in printed
    assert "Please give numbers from 1 to 3, Enter or s." in printed
    assert re.search(r"Why .*\?\n  I expect that you like it with", printed)
    assert "Welcome back: 1 answers and 3 rated items" in piped([])


def test_another_policy_is_chosen_by_name(piped, tmp_path, capsys):
    printed = piped(["1"], "--policy", "LinUCB", "--items", "2")
    assert "LinUCB recommends" in printed and "Do you like" not in printed
    assert main(["chat", "--policy", "LinUBC", "--out", str(tmp_path / "other")]) == 2
    assert "there is no such policy (did you mean 'LinUCB'?)" in capsys.readouterr().err


def test_the_folder_of_another_study_is_refused(piped, tmp_path, capsys):
    piped([], "--out", "here")
    changed = ["chat", "--out", str(tmp_path / "here"), "--policies.LinUCB.init_args.alpha=0.9"]
    assert main(changed) == 2
    assert "this folder is of another study (policies.LinUCB.init_args.alpha: 0.25" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("person", PEOPLE[:2], ids=lambda person: person.terms[0])
def test_a_person_at_a_terminal_is_shown_what_they_like(person, piped, tmp_path):
    pexpect = pytest.importorskip("pexpect", reason="needs pexpect, for a pseudo-terminal")
    terminal = pexpect.spawn(
        sys.executable,
        [*CHAT, "--user", "ann"],
        cwd=str(tmp_path),
        encoding="utf-8",
        timeout=60,
        dimensions=(50, 200),
        env=os.environ | {"TERM": "xterm"},
    )
    shown, questions = [], 0
    while len(shown) < 90:
        came = terminal.expect([r"Do you like ([^?]*)\?.*\] ", r"Which do you like\?.*\] ", pexpect.EOF])
        assert came < 2, terminal.before
        if came == 0:
            questions += 1
            terminal.sendline("y" if person.answers(terminal.match[1]) else "n")
            continue
        films = shown_in(terminal.before)
        assert len(films) == 3
        shown += films
        terminal.sendline(" ".join(str(n) for n, film in enumerate(films, 1) if person.likes(film)))
    terminal.expect("What I believe so far")
    terminal.expect(r"Do you like|Which do you like")
    believed = re.findall(r"\+ (.*?) +[█░]", plain(terminal.before))
    terminal.sendintr()  # Ctrl-C
    terminal.expect("Kept in people/films. The same command goes on.")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0
    assert questions > 0 and len(set(shown)) == 90  # nothing comes twice
    assert sum(map(person.likes, shown)) / len(shown) >= 2 * person.share
    assert set(person.terms) <= set(believed)
    assert f"{questions} answers and 90 rated items are kept" in piped([], "--user", "ann")

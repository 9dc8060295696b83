"""Records what a command does to the files below a folder, and builds what a power failure would leave.

A recorder in every process of the command takes a picture of the folder before each step that changes names
(opening for writing, renaming, removing, making folders) and at each `fsync`. A disk promises to keep what
was synced, and nothing else: `Disk` follows the pictures, and `images` builds folders that a power failure
could leave at that point. Contents that were not synced are lost, cut or kept; names that were made, moved or
removed without a sync of their folder are as before or as after: all of them, and random subsets.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LOG, ROOT = "CONBANDIT_RECORD_LOG", "CONBANDIT_RECORD_ROOT"
_CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Recorder:
    """Writes the steps of this process, and of others beside it, into one log.

    Args:
        root: the folder to watch.
        log: where the steps and all contents are kept.
    """

    def __init__(self, root: Path, log: Path) -> None:
        self._root, self._log = root.resolve(), log
        (log / "blobs").mkdir(parents=True, exist_ok=True)
        self._busy = threading.local()
        self._lock = threading.Lock()

    def install(self) -> None:
        """Record from now on; there is no way back."""
        real = os.fsync

        def fsync(handle: int) -> None:
            number = handle if isinstance(handle, int) else handle.fileno()
            self._step("fsync", lambda: real(number), os.fstat(number).st_ino)

        os.fsync = fsync  # type: ignore[assignment]
        self._step("start")
        sys.addaudithook(self._hook)

    def report(self, job: tuple[str, int]) -> None:
        """Note that the user was told that a job has finished."""
        self._step("report", about=list(job))

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if getattr(self._busy, "now", False):
            return
        if event in _CHANGES:
            self._step(event)
        elif event == "open" and isinstance(arguments[0], str | bytes) and arguments[2] & _WRITING:
            path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100 - quick: every open comes here
            if path.startswith(f"{self._root}{os.sep}"):
                self._step(event)

    def _step(self, kind: str, do: Callable[[], None] | None = None, about: Any = None) -> None:
        self._busy.now = True
        try:
            with self._lock, (self._log / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                step = {"kind": kind, "about": about, "picture": self._picture()}
                if do is not None:
                    do()
                with (self._log / "steps.jsonl").open("a") as file:
                    file.write(json.dumps(step) + "\n")
        finally:
            self._busy.now = False

    def _picture(self) -> dict[str, tuple[int, str | None]]:
        """Inode, and digest of the content, by path; None: a folder."""
        picture: dict[str, tuple[int, str | None]] = {"": (self._root.stat().st_ino, None)}
        for path in sorted(self._root.rglob("*")):
            try:
                inode = path.stat().st_ino
                content = None if path.is_dir() else path.read_bytes()
            except FileNotFoundError:  # another process has removed it
                continue
            digest = None
            if content is not None:
                digest = hashlib.sha256(content).hexdigest()
                blob = self._log / "blobs" / digest
                if not blob.exists():
                    blob.write_bytes(content)
            picture[path.relative_to(self._root).as_posix()] = (inode, digest)
        return picture


def install_from_environment() -> Recorder | None:
    """In a process of a recorded command, record; elsewhere do nothing."""
    if LOG not in os.environ:
        return None
    recorder = Recorder(Path(os.environ[ROOT]), Path(os.environ[LOG]))
    recorder.install()
    return recorder


@dataclass
class Disk:
    """What is on a disk, and what may be, as far as the steps so far tell.

    Attributes:
        log: where the recorder keeps contents.
        entries: names now, with the ids of files and folders, by folder's id.
        contents: digest of each file's content now.
        kept_entries: names that are sure to survive, by folder's id.
        kept_contents: digest of the content that is sure to survive.
        folders: ids of folders.
        reported: jobs that the user was told have finished.
    """

    log: Path
    entries: dict[int, dict[str, int]] = field(default_factory=dict)
    contents: dict[int, str] = field(default_factory=dict)
    kept_entries: dict[int, dict[str, int]] = field(default_factory=dict)
    kept_contents: dict[int, str] = field(default_factory=dict)
    folders: set[int] = field(default_factory=set)
    reported: list[tuple[str, int]] = field(default_factory=list)
    _ids: dict[int, int] = field(default_factory=dict)  # by inode, which is used again after a removal
    _count: int = 0

    def follow(self, step: dict[str, Any]) -> None:
        """Take one more step."""
        picture: dict[str, tuple[int, str | None]] = step["picture"]
        present = {inode for inode, _ in picture.values()}
        self._ids = {inode: own for inode, own in self._ids.items() if inode in present}
        for inode in sorted(present - self._ids.keys()):
            self._ids[inode] = self._count
            self._count += 1
        self.entries = {self._ids[inode]: {} for inode, digest in picture.values() if digest is None}
        self.folders |= self.entries.keys()
        for path, (inode, digest) in picture.items():
            if path:
                above, _, name = path.rpartition("/")
                if above in picture:
                    self.entries[self._ids[picture[above][0]]][name] = self._ids[inode]
            if digest is not None:
                self.contents[self._ids[inode]] = digest
        if step["kind"] == "start" and not self.kept_entries:
            self.kept_entries = {own: dict(names) for own, names in self.entries.items()}
            self.kept_contents = dict(self.contents)
        elif step["kind"] == "fsync" and step["about"] in self._ids:
            own = self._ids[step["about"]]
            if own in self.folders:
                self.kept_entries[own] = dict(self.entries[own])
            else:
                self.kept_contents[own] = self.contents[own]
        elif step["kind"] == "report":
            self.reported.append(tuple(step["about"]))

    def image(self, names: Callable[[], bool], data: Callable[[], str]) -> dict[str, bytes | None]:
        """What a power failure may leave: contents by path; None: a folder.

        Args:
            names: whether a change of names that was not synced is kept; asked for each.
            data: whether content that was not synced is "lost", "cut" or "kept"; asked for each file.
        """
        return dict(self._below(0, "", names, data))

    def _below(
        self, folder: int, path: str, names: Callable[[], bool], data: Callable[[], str]
    ) -> Iterator[tuple[str, bytes | None]]:
        before, now = self.kept_entries.get(folder, {}), self.entries.get(folder)
        now = before if now is None else now  # of a folder that was removed, and came back
        chosen: dict[str, int] = {}
        # A file that was renamed has its old name or its new one, never both or neither.
        moved = {before[name]: name for name in before if now.get(name) != before[name]}
        decided: dict[str, bool] = {}
        for name in sorted(before.keys() | now.keys(), key=lambda name: (name not in now, name)):
            if before.get(name) == now.get(name):
                chosen[name] = now[name]
                continue
            kept = decided.setdefault(name, names())
            if name in now and now[name] in moved:
                decided[moved[now[name]]] = kept
            source = now if kept else before
            if name in source:
                chosen[name] = source[name]
        for name, own in chosen.items():
            inside = f"{path}/{name}".strip("/")
            if own in self.folders:
                yield inside, None
                yield from self._below(own, inside, names, data)
            else:
                yield inside, self._content(own, data)

    def _content(self, own: int, data: Callable[[], str]) -> bytes:
        now, kept = self.contents[own], self.kept_contents.get(own)
        if now == kept:
            return self._blob(now)
        how = data()
        if how == "kept":
            return self._blob(now)
        sure = b"" if kept is None else self._blob(kept)
        if how == "lost":
            return sure
        content = self._blob(now)
        start = len(sure) if content.startswith(sure) else 0
        return content[: (start + len(content)) // 2]

    def _blob(self, digest: str) -> bytes:
        return (self.log / "blobs" / digest).read_bytes()


@dataclass(frozen=True)
class Image:
    """What a power failure may leave.

    Attributes:
        step: after how many steps it came.
        kind: which of the possibilities it is.
        files: contents by path; None: a folder.
        reported: jobs that the user was told have finished.
    """

    step: int
    kind: str
    files: dict[str, bytes | None]
    reported: list[tuple[str, int]]

    def write(self, folder: Path) -> None:
        """Make it real."""
        folder.mkdir(parents=True)
        for path, content in self.files.items():
            if content is None:
                (folder / path).mkdir(parents=True)
            else:
                (folder / path).write_bytes(content)


def images(log: Path, subsets: int, seed: int = 0) -> Iterator[Image]:
    """All different images of a record, `subsets` random ones after each step among them."""
    generator = random.Random(seed)
    ways: dict[str, tuple[Callable[[], bool], Callable[[], str]]] = {
        "only what was synced": (lambda: False, lambda: "lost"),
        "names kept, data lost": (lambda: True, lambda: "lost"),
        "names kept, data cut": (lambda: True, lambda: "cut"),
        "names lost, data kept": (lambda: False, lambda: "kept"),
        "all kept": (lambda: True, lambda: "kept"),
    }
    for number in range(subsets):
        ways[f"subset {number}"] = (
            lambda: generator.random() < 0.5,
            lambda: generator.choice(("lost", "cut", "kept")),
        )
    disk, seen = Disk(log), set[str]()
    for number, line in enumerate((log / "steps.jsonl").read_text().splitlines()):
        disk.follow(json.loads(line))
        for kind, way in ways.items():
            files = disk.image(*way)
            about = sorted((path, content) for path, content in files.items() if not path.endswith(".lock"))
            digest = hashlib.sha256(repr((about, disk.reported)).encode()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                yield Image(number, kind, files, list(disk.reported))

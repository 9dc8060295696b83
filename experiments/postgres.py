"""A PostgreSQL server of its own, for as long as it is needed, as an unprivileged user.

with server(Path("/tmp/some/folder")) as url: ...
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql")
_SETTINGS = {"listen_addresses": "''", "max_connections": "40", "shared_buffers": "32MB"}


def binaries() -> Path | None:
    """The folder of `initdb` and `postgres`; None: there is no PostgreSQL on this machine."""
    found = [path.parent for place in _PLACES for path in Path(place).glob("**/bin/initdb")]
    if not found and (path := shutil.which("initdb")) is not None:
        found.append(Path(path).resolve().parent)
    return max(found, default=None)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of a new server's database, which ends at the end.

    Args:
        folder: an empty folder for its data and its socket; its path must be short.
    """
    tools = binaries()
    if tools is None:
        raise FileNotFoundError("there is no PostgreSQL on this machine")
    user = _unprivileged()
    data = folder / "data"
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    name = pwd.getpwuid(os.getuid()).pw_name if user is None else user.pw_name

    def call(tool: str, *words: str) -> None:
        subprocess.run(
            [str(tools / tool), *words],
            check=True,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
            env={**os.environ, "HOME": str(folder)},
        )

    call("initdb", "-D", str(data), "-U", name, "-A", "trust", "-E", "UTF8", "--no-sync")
    settings = " ".join(f"-c {key}={value}" for key, value in _SETTINGS.items())
    start = ("-D", str(data), "-w", "-l", str(folder / "log"), "-o", f"-k {folder} {settings}")
    call("pg_ctl", "start", *start)
    try:
        yield f"postgresql+psycopg://{name}@/postgres?host={folder}"
    finally:
        with suppress(subprocess.CalledProcessError):
            call("pg_ctl", "stop", "-D", str(data), "-m", "immediate")


def _unprivileged() -> pwd.struct_passwd | None:
    """Who runs the server: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL does not run as root, and there is no user postgres or nobody")

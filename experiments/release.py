"""Is the repository ready for a release? Builds it, installs it in an empty environment, and runs it there.

    python -m experiments.release --out DIR
    python -m experiments.release --out DIR --borrow

All places must name the same version. The sdist and the wheel are built into DIR. The wheel is made from the
sdist, so what the sdist lacks is noticed. An empty environment then installs the wheel, as a user would, and
runs the quickstart. With `--borrow` that environment takes the dependencies from this one, so that little is
downloaded.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import venv
import zipfile
from pathlib import Path

from conbandit_torch.core.version import VERSION

REPOSITORY = Path(__file__).resolve().parent.parent
PLACES = {
    "CITATION.cff": r"^version: (\S+)$",
    "docs/cite.md": r"version = \{(\S+)\}",
}
NEEDED = ("README.md", "LICENSE", "pyproject.toml", "conbandit_torch/py.typed", "configs/quickstart.yaml")


def main(words: list[str] | None = None) -> int:
    """Check everything; gives the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to build")
    parser.add_argument("--borrow", action="store_true", help="take the dependencies from this environment")
    options = parser.parse_args(words)
    wrong = versions_that_differ()
    if wrong:
        return _said(wrong)
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    sdist, wheel = build(out)
    wrong = missing(sdist) + superfluous(wheel)
    if wrong:
        return _said(wrong)
    try_it(wheel, out, borrow=options.borrow)
    sys.stdout.write(f"ready: {sdist.name}, {wheel.name}\n")
    return 0


def versions_that_differ() -> list[str]:
    """A line for every place that names another version than the package does."""
    found = []
    for place, pattern in PLACES.items():
        said = re.search(pattern, (REPOSITORY / place).read_text(encoding="utf-8"), re.MULTILINE)
        if said is None or said[1] != VERSION:
            found.append(f"{place}: names version {said and said[1]}, the package is {VERSION}")
    if f"## {VERSION}" not in (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8"):
        found.append(f"CHANGELOG.md: has no heading of version {VERSION}")
    return found


def build(out: Path) -> tuple[Path, Path]:
    """The sdist, and the wheel that is made from it."""
    for old in [*out.glob("*.tar.gz"), *out.glob("*.whl")]:
        old.unlink()
    _run(sys.executable, "-m", "pip", "install", "-q", "--target", str(out / "tools"), "build")
    start = f"import sys; sys.path.insert(0, {str(out / 'tools')!r})"
    call = "from build.__main__ import main; main(sys.argv[1:])"
    _run(sys.executable, "-c", f"{start}; {call}", "--outdir", str(out), str(REPOSITORY))
    shutil.rmtree(out / "tools")
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return sdist, wheel


def missing(sdist: Path) -> list[str]:
    """What an sdist must have and this one has not."""
    with tarfile.open(sdist) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    return [f"{sdist.name}: lacks {name}" for name in NEEDED if name not in names]


def superfluous(wheel: Path) -> list[str]:
    """What a wheel must not have and this one has."""
    names = zipfile.ZipFile(wheel).namelist()
    return [
        f"{wheel.name}: has {name}"
        for name in names
        if name.split("/")[0] in ("tests", "experiments", "docs")
    ]


def try_it(wheel: Path, out: Path, *, borrow: bool) -> None:
    """Install the wheel in an empty environment, and run the quickstart there, away from the clone."""
    environment = out / "environment"
    venv.create(environment, clear=True, with_pip=True)
    python = environment / "bin" / "python"
    if borrow:
        lend(python)
    began = time.perf_counter()
    _run(str(python), "-m", "pip", "install", "-q", *(["--no-deps"] if borrow else []), str(wheel))
    installed = time.perf_counter()
    program = str(environment / "bin" / "conbandit")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True, cwd=out).stdout
    if VERSION not in said:
        raise SystemExit(f"conbandit --version says {said!r}, not {VERSION}")
    results = out / "quickstart"
    shutil.rmtree(results, ignore_errors=True)
    _run(program, "run", "quickstart", "--threads", "1", "--out", str(results), folder=out)
    sys.stdout.write(
        f"installed in {installed - began:.0f} s, quickstart in {time.perf_counter() - installed:.0f} s\n"
    )
    shutil.rmtree(environment)


def lend(python: Path) -> None:
    """Let an environment find the packages of this one, behind its own."""
    place = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (Path(place) / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")


def _run(*command: str, folder: Path = REPOSITORY) -> None:
    subprocess.run(command, check=True, cwd=folder)


def _said(lines: list[str]) -> int:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    return 1


if __name__ == "__main__":
    sys.exit(main())

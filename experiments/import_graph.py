"""Draws who imports whom in a package, and counts the lines of its rooms.

    python -m experiments.import_graph conbandit_torch --out docs/import_graph_after.png --title "After"
    python -m experiments.import_graph conbandit_torch --before OLD/conbandit_torch

An arrow goes from the module that imports to the module that is imported. Late imports and those under
TYPE_CHECKING count. An arrow is red if it goes up, if it is part of a circle, or if it connects rooms that
must not know each other. A layout whose modules lie in rooms is drawn room by room; one whose modules lie on
the top level is drawn module by module, each beside the modules that went into the same room.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

Graph = dict[str, set[str]]
"""The modules that a module imports, by its name within the package; "" is the package itself."""

# From the ground up: a module may import those below it, and those beside it. The room `running` has two
# storeys: what a run is made of, and, above the loop and the configs, what runs the jobs.
PARTS_OF_A_RUN = [
    *("metrics", "folder", "origin", "processes", "plan", "checkpoint"),
    *("result", "signals", "workers", "objective", "record", "user_sums"),
]
STOREYS = [
    ["core"],
    ["kernels"],
    ["models"],
    ["datasets"],
    ["environments"],
    ["bandits"],
    ["conversation"],
    [f"running.{name}" for name in PARTS_OF_A_RUN],
    ["callbacks"],
    ["loop"],
    ["configuration"],
    ["results"],
    ["running"],
    ["live"],
    ["tuning"],
    ["leaderboard"],
    ["testing", "commands", "__main__", ""],
]
# Rooms that must not know the others, although those may stand below them.
PLAYING = {"models", "bandits", "conversation", "environments", "callbacks", "loop"}
NEVER = [
    ({"environments", "datasets"}, {"bandits", "conversation"}),
    ({"bandits", "conversation", "models"}, {"environments", "datasets"}),
    ({"results"}, PLAYING),  # results are read without torch
]
LOWER, UPPER = "running: parts of a run", "running: the jobs"

# Where the modules went that lay on the top level of the package, as `git show -M 692d3fb` tells. Those that
# were cut up stand with the larger part.
MOVED = {
    "aggregate": "results.aggregate",
    "algebra": "core.algebra",
    "callbacks": "callbacks.base",
    "catalogue": "core.catalogue",
    "checkpoint": "running.checkpoint",
    "cli": "commands.main",
    "config": "configuration.load",
    "config_errors": "configuration.errors",
    "data_cli": "commands.data",
    "events": "callbacks.events",
    "experiment": "running.plan",
    "files": "core.files",
    "hidden_regression": "models.hidden",
    "history": "models.history",
    "job": "running.job",
    "metrics": "running.metrics",
    "parallel": "running.workers",
    "plots": "results.plots",
    "randomness": "core.randomness",
    "records": "core.context",
    "regression": "models.ridge",
    "report": "results.report",
    "results": "results.read",
    "runner": "running.runner",
    "search_space": "tuning.search_space",
    "sharding": "core.processes",
    "signals": "running.signals",
    "tables": "results.tables",
    "theory": "models.confidence",
    "tuning": "tuning.tune",
    "yaml_files": "configuration.yaml_files",
}
TOP = "top level"

WIDE = 13.0  # inches
RED_IS = (
    "Red: goes up, is part of a circle, or connects rooms that must not know each other. "
    "Late imports and TYPE_CHECKING count."
)
RED, DARK, PALE = "#cc0000", "#333333", "#d3d3d3"


@dataclass(frozen=True)
class Package:
    """Modules of a package.

    Attributes:
        paths: their files, by name.
        imports: whom they import.
        rooms: whether the top level has only a few modules.
    """

    paths: dict[str, Path]
    imports: Graph
    rooms: bool

    def now(self, module: str) -> str:
        """The module's place in the layout with rooms."""
        return module if self.rooms else MOVED.get(module, module)

    def storey(self, module: str) -> int:
        """How far up the module stands."""
        return storey(self.now(module))

    def is_red(self, module: str, other: str, circles: Sequence[set[str]]) -> bool:
        """Whether an import goes up, is part of a circle, or connects rooms that must not know each other."""
        if self.storey(other) > self.storey(module) or any({module, other} <= ring for ring in circles):
            return True
        rooms = [self.now(name).partition(".")[0] for name in (module, other)]
        return any(rooms[0] in those and rooms[1] in strangers for those, strangers in NEVER)


def read_package(folder: Path) -> Package:
    """The package that lies in the folder, from its syntax trees alone: nothing is imported."""
    paths = {}
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        paths[".".join(part for part in parts if part != "__init__")] = path
    if "" not in paths:
        raise ValueError(f"{folder}: not a package, it has no __init__.py")
    imports = {
        name: imported(path.read_text(encoding="utf-8"), folder.name, name, paths) - {name}
        for name, path in paths.items()
    }
    on_top = [name for name, path in paths.items() if path.parent == folder]
    return Package(paths, imports, rooms=not any(name in MOVED for name in on_top))


def imported(source: str, package: str, module: str, known: Iterable[str]) -> set[str]:
    """The modules of the package that a module imports, wherever in its source."""
    known, found = set(known), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{package}.{module}: line {node.lineno}: imports must be absolute")
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == package or name.startswith(f"{package}."):
                inside = name.removeprefix(package).removeprefix(".")
                while inside not in known:  # a name in a module
                    inside = inside.rpartition(".")[0]
                found.add(inside)
    return found


def storey(module: str) -> int:
    """The number of the storey that a module stands on, found by its longest listed prefix."""
    ranks = {prefix: rank for rank, prefixes in enumerate(STOREYS) for prefix in prefixes}
    prefix = module
    while prefix not in ranks:
        prefix = prefix.rpartition(".")[0]
        if not prefix:
            raise ValueError(f"{module} stands in no room that STOREYS lists")
    return ranks[prefix]


def room(module: str) -> str:
    """The room, as pictures name it: a folder, a storey of `running`, or a module on the top level."""
    first = module.partition(".")[0]
    if first != "running":
        return first or "__init__"
    return LOWER if storey(module) < storey("loop") else UPPER


def folder_of(module: str) -> str:
    """The room, as tables name it: a folder, or the top level."""
    first = module.partition(".")[0]
    return TOP if first in ("", "__main__", "loop") else first


def circles_of(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """The sets of nodes that reach each other."""
    reach = {node: _reached(graph, node) for node in graph}
    circles: list[set[str]] = []
    for node in graph:
        if node in reach[node] and not any(node in circle for circle in circles):
            circles.append({other for other in reach[node] if node in reach[other]})
    return circles


def _reached(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = list(graph[start])
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(graph[node])
    return found


def red_imports(package: Package) -> list[tuple[str, str]]:
    """The imports that `Package.is_red` names."""
    circles = circles_of(package.imports)
    pairs = [(one, other) for one, others in package.imports.items() for other in sorted(others)]
    return [pair for pair in pairs if package.is_red(*pair, circles)]


def lines_of(path: Path) -> int:
    """The file's lines, as `wc -l` counts them."""
    return path.read_bytes().count(b"\n")


def sizes(package: Package) -> dict[str, tuple[int, int]]:
    """Files and lines per room; modules that have moved since count where they are now."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name, path in package.paths.items():
        own = folder_of(package.now(name))
        files[own] += 1
        lines[own] += lines_of(path)
    return {name: (files[name], lines[name]) for name in files}


def size_table(before: Package, after: Package) -> str:
    """A Markdown table of files and lines per room."""
    old, new = sizes(before), sizes(after)
    order = [prefixes[0] for prefixes in STOREYS[:-1] if "." not in prefixes[0] and prefixes[0] != "loop"]
    order += ["commands", "testing", TOP]
    rows = ["| room | files before | files after | lines before | lines after |", "|---|--:|--:|--:|--:|"]
    for name in [one for one in order if one in {*old, *new}]:
        (files, lines), (files_now, lines_now) = old.get(name, (0, 0)), new.get(name, (0, 0))
        called = name if name == TOP else f"`{name}`"
        rows.append(f"| {called} | {files} | {files_now} | {lines:,} | {lines_now:,} |")
    totals = [sum(size[n] for size in one.values()) for n in (0, 1) for one in (old, new)]
    rows.append("| all | " + " | ".join(f"{total:,}" for total in totals) + " |")
    return "\n".join(rows)


@dataclass(frozen=True)
class Box:
    """A node of the picture, placed.

    Attributes:
        name: what is written in it.
        note: what is written below the name.
        x: its middle, in units of the picture's width.
        y: its middle, in rows from the bottom.
        width: in units of the picture's width.
        colour: what it is filled with.
    """

    name: str
    note: str
    x: float
    y: float
    width: float
    colour: str = "white"


def draw(package: Package, out: Path, title: str) -> None:
    """Draw the picture that suits the layout."""
    if package.rooms:
        _draw_rooms(package, out, title)
    else:
        _draw_modules(package, out, title)


# Where rooms stand from left to right: policies on the left, data on the right, what runs them in the middle.
_COLUMNS = {
    "core": 0.5,
    "kernels": 0.24,
    "models": 0.3,
    "bandits": 0.2,
    "conversation": 0.12,
    "datasets": 0.8,
    "environments": 0.86,
    LOWER: 0.56,
    "callbacks": 0.4,
    "loop": 0.52,
    "configuration": 0.28,
    "results": 0.76,
    UPPER: 0.56,
    "tuning": 0.73,
    "commands": 0.5,
    "testing": 0.87,
    "__init__": 0.12,
    "__main__": 0.5,
}


def _draw_rooms(package: Package, out: Path, title: str) -> None:
    members: dict[str, list[str]] = {}
    for name in package.imports:
        members.setdefault(room(name), []).append(name)
    circles = circles_of(package.imports)
    arrows: Counter[tuple[str, str]] = Counter()
    red = set()
    for one, others in package.imports.items():
        for other in others:
            pair = room(one), room(other)
            if pair[0] != pair[1]:
                arrows[pair] += 1
                if package.is_red(one, other, circles):
                    red.add(pair)
    graph = {name: {other for one, other in arrows if one == name} for name in members}
    rings = circles_of(graph)
    red |= {pair for pair in arrows if any(set(pair) <= ring for ring in rings)}
    rows = _rows(graph, red)
    boxes = {}
    for name, own in members.items():
        paths = [package.paths[module] for module in own]
        number = "1 file" if len(paths) == 1 else f"{len(paths)} files"
        note = f"{number}, {sum(map(lines_of, paths)):,} lines"
        label = f"{name}.py" if len(paths) == 1 and paths[0].stem == name else name
        width = 0.2 if ":" in name else 0.15
        boxes[name] = Box(label, note, _COLUMNS.get(name, 0.5), rows[name], width)
    direct = _not_implied(graph)
    lines = []
    for pair, number in sorted(arrows.items()):
        colour = RED if pair in red else DARK if pair in direct else PALE
        lines.append((pair, colour, 0.7 + 0.45 * number**0.5))
    notes = [
        f"{sum(len(others) for others in package.imports.values())} imports between "
        f"{len(package.imports)} modules: {len(red_imports(package))} of them red.",
        "Dark: an arrow that no others imply. Pale: one that others imply. Wide: many imports.",
        RED_IS,
    ]
    _paint(boxes, lines, out, title, notes, row_height=0.86)


def _rows(graph: Mapping[str, set[str]], red: set[tuple[str, str]]) -> dict[str, int]:
    """Every node one row above the highest that it imports, red arrows left out."""
    rows: dict[str, int] = {}

    def row(node: str, above: tuple[str, ...] = ()) -> int:
        if node not in rows:
            below = [other for other in graph[node] if (node, other) not in red and other not in above]
            rows[node] = 1 + max((row(other, (*above, node)) for other in below), default=-1)
        return rows[node]

    for node in graph:
        row(node)
    return rows


def _not_implied(graph: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """The arrows without which something could no more be reached."""
    return {
        (one, other)
        for one, others in graph.items()
        for other in others
        if not any(other in _reached(graph, middle) for middle in others - {other})
    }


# Modules that red arrows would pass behind elsewhere.
_PLACES = {"loop": 0.4, "events": 0.54, "callbacks": 0.7}


def _draw_modules(package: Package, out: Path, title: str) -> None:
    circles = circles_of(package.imports)
    red = red_imports(package)
    seen = {name for pair in red for name in pair}
    # Folders are one box; but for their modules that red arrows touch.
    node_of = {}
    for name in package.imports:
        first = name.partition(".")[0]
        is_folder = (package.paths[""].parent / first).is_dir() and first != ""
        node_of[name] = first if is_folder and name not in seen else name
    members: dict[str, list[str]] = {}
    for name, node in node_of.items():
        members.setdefault(node, []).append(name)
    levels: dict[int, list[str]] = {}
    for node in members:
        levels.setdefault(package.storey(node), []).append(node)
    boxes = {}
    for y, level in enumerate(sorted(levels)):
        own = sorted(levels[level])
        for place, node in enumerate(own):
            x = 0.566 + (place - (len(own) - 1) / 2) * 0.146
            x += 0.03 * (-1) ** y if len(own) < 6 else 0  # so that arrows do not lie upon each other
            x = _PLACES.get(node, x)
            number = len(members[node])
            note = f"{sum(lines_of(package.paths[name]) for name in members[node]):,} lines"
            name = node.rpartition(".")[2] or "__init__"
            if number > 1:
                others = "others" if any(module.startswith(f"{node}.") for module in seen) else "files"
                name, note = f"{node}/", f"{number} {others}, {note}"
            colour = "#eeeeee" if number > 1 or "." in node else "white"
            boxes[node] = Box(name, note, x, y, 0.13, colour)
    margin = {
        y: "commands" if "commands" in STOREYS[level] else room(STOREYS[level][0])
        for y, level in enumerate(sorted(levels))
    }
    arrows = []
    for one, others in package.imports.items():
        for other in others:
            pair = node_of[one], node_of[other]
            if pair[0] != pair[1]:
                is_red = package.is_red(one, other, circles)
                arrows.append((pair, RED if is_red else PALE, 2.0 if is_red else 0.6))
    on_top = sum(path.parent == package.paths[""].parent for path in package.paths.values())
    notes = [
        f"{sum(len(others) for others in package.imports.values())} imports between "
        f"{len(package.imports)} modules: {len(red)} of them red. {on_top} modules lie on the top level.",
        "Rows: the rooms that the modules went into, from core at the bottom to commands. Grey: in a folder.",
        RED_IS,
    ]
    arrows = sorted(set(arrows), key=lambda arrow: arrow[1] == RED)
    _paint(boxes, arrows, out, title, notes, row_height=0.76, margin=margin)


def _paint(
    boxes: Mapping[str, Box],
    arrows: Iterable[tuple[tuple[str, str], str, float]],
    out: Path,
    title: str,
    notes: Sequence[str],
    row_height: float,
    margin: Mapping[int, str] | None = None,
) -> None:
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    top = max(box.y for box in boxes.values())
    figure = Figure(figsize=(WIDE, row_height * (top + 1) + 1.3), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(-0.6 - 0.5 / row_height, top + 0.55 + 0.55 / row_height))
    patches: dict[str, Any] = {}
    for name, box in boxes.items():
        height = 0.56
        corner = box.x - box.width / 2, box.y - height / 2
        patches[name] = FancyBboxPatch(
            corner,
            box.width,
            height,
            boxstyle="round,pad=0,rounding_size=0.01",
            mutation_aspect=8,
            facecolor=box.colour,
            edgecolor=DARK,
            linewidth=1.1,
            zorder=5,
        )
        axes.add_patch(patches[name])
        text = {"ha": "center", "va": "center", "zorder": 6}
        axes.text(box.x, box.y + 0.1, box.name, fontsize=11, weight="bold", **text)
        axes.text(box.x, box.y - 0.14, box.note, fontsize=9.5, **text)
    for y, label in (margin or {}).items():
        axes.text(
            0.01, y, label.replace(": ", ":\n"), fontsize=10.5, style="italic", va="center", color="#555555"
        )
    for (one, other), colour, width in arrows:
        start, end = boxes[one], boxes[other]
        rows, columns = abs(start.y - end.y), abs(start.x - end.x)
        bend = (0.18 if colour == RED else 0.06) * (1 if start.x < end.x else -1)
        if rows == 1:
            bend = 0.15 if colour == RED else 0.0
        elif rows == 0:  # over, or under, the boxes between them
            bend = (0.7 if columns < 0.2 else 0.95) * row_height / (WIDE * columns)
        axes.add_patch(
            FancyArrowPatch(
                (start.x, start.y),
                (end.x, end.y),
                patchA=patches[one],
                patchB=patches[other],
                connectionstyle=f"arc3,rad={bend}",
                arrowstyle="-|>",
                mutation_scale=9 + 2 * width,
                color=colour,
                linewidth=width,
                shrinkA=0,
                shrinkB=1,
                zorder={RED: 4, DARK: 3, PALE: 2}[colour],
            )
        )
    axes.text(0.015, top + 0.55 + 0.25 / row_height, title, fontsize=15, weight="bold", va="center")
    axes.text(0.015, -0.62 - 0.2 / row_height, "\n".join(notes), fontsize=10.5, va="center", linespacing=1.35)
    _save(figure, out)


def _save(figure: Any, out: Path) -> None:
    """As a PNG file of few colours, which takes a quarter of the room."""
    from PIL import Image  # it comes with matplotlib

    drawn = BytesIO()
    figure.savefig(drawn, dpi=115)
    Image.open(drawn).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(out, optimize=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw a picture, or print a table of lines per room before and after."""
    parser = argparse.ArgumentParser(description="Who imports whom in a package.")
    parser.add_argument("package", type=Path, metavar="PACKAGE_FOLDER")
    parser.add_argument("--out", type=Path, metavar="FILE", help="draw the import graph into this PNG file")
    parser.add_argument("--title", default="Who imports whom")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="print lines per room, of both")
    options = parser.parse_args(arguments)
    package = read_package(options.package)
    if options.out is not None:
        draw(package, options.out, options.title)
    if options.before is not None:
        sys.stdout.write(size_table(read_package(options.before), package) + "\n")
    for one, other in red_imports(package):
        sys.stdout.write(f"red: {one or '__init__'} -> {other or '__init__'}\n")


if __name__ == "__main__":
    main()

"""A stranger's file is short, and imports public names alone."""

import ast
from pathlib import Path

import pytest

FILES = [path for path in Path(__file__).parent.glob("test_*.py") if path.name != "test_limits.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_has_at_most_80_lines_and_only_public_imports(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    modules = {node.module for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"conbandit_torch", "conbandit_torch.testing"}

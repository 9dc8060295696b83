"""Compiled kernels that are kept on disk: damage is seen, and made good by compiling again."""

import importlib.util
import sys

import pytest
import torch

pytest.importorskip("numba")
from conbandit_torch import kernels
from conbandit_torch.kernels import choice, kept, kernels_for, reference, using
from conbandit_torch.kernels.kept import Kept

TINY = """
from numba import njit

@njit(cache=True)
def plus_one(x):
    return x + {one}
"""


@pytest.fixture
def tiny(tmp_path):
    """Calls a kernel as a new process would, after `mend` or without; and the folder where it is kept."""
    source = tmp_path / "tiny.py"
    source.write_text(TINY.format(one=1))

    def call(*, mending=True, running=True):
        spec = importlib.util.spec_from_file_location("tiny", source)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        own = Kept(source, module.plus_one)
        if mending:
            own.mend()
        if not running:
            return None
        was_complete = own.is_complete(torch.float32)
        if not was_complete:
            with own.compiling(torch.float32):
                module.plus_one(1)
        return module.plus_one(1), was_complete

    assert call() == (2, False) and call() == (2, True)
    return source, call


def only(source, pattern):
    (path,) = (source.parent / "__pycache__").glob(pattern)
    return path


def test_an_index_that_a_power_failure_emptied_is_compiled_again(tiny):
    source, call = tiny
    only(source, "*.nbi").write_bytes(b"")
    with pytest.raises(EOFError):
        call(mending=False)
    assert call()[0] == 2
    assert call(mending=False)[0] == 2  # made good


@pytest.mark.parametrize("damaged", ["*.nbc", "compiled-*"])
def test_one_flipped_bit_in_what_is_kept_is_said_and_compiled_again(tiny, caplog, damaged):
    source, call = tiny
    path = only(source, damaged)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert call() == (2, False)
    assert "compiled kernels are damaged; they are compiled again" in caplog.text
    assert call() == (2, True)


def test_code_of_other_sources_is_removed_so_that_no_index_can_name_it(tiny):
    """numba writes the index first: killed before the code, it leaves an index that names what was there."""
    source, call = tiny
    code = only(source, "*.1.nbc")
    old = code.read_bytes()
    source.write_text(TINY.format(one=100))
    call(running=False)
    assert not code.exists()
    assert call() == (101, False)
    code.write_bytes(old)
    assert call(mending=False)[0] == 2  # what numba alone would run
    assert call() == (101, False)


def test_what_another_python_keeps_there_is_left_alone(tiny):
    source, call = tiny
    for path in list((source.parent / "__pycache__").glob("tiny.*.nb?")):
        path.with_name(path.name.replace(kept._PYTHON, ".py399")).write_bytes(b"of another numba")
    assert call() == (2, True)
    assert len(list((source.parent / "__pycache__").glob("tiny.*.py399.*"))) == 2


def test_numba_without_any_folder_to_write_into_compiles_in_every_process(monkeypatch, caplog):
    def nowhere(**_):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(kept.numba, "njit", nowhere)
    assert not kept.can_keep() and "numba finds no folder for compiled kernels" in caplog.text


def test_a_numba_that_cannot_be_imported_is_said_and_torch_does_the_work(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "conbandit_torch.kernels.compiled", None)
    monkeypatch.delattr(kernels, "compiled", raising=False)
    choice._compiled.cache_clear()
    try:
        assert kernels_for(torch.zeros(1)) is reference and kernels.name_of("cpu") == "torch"
        assert "numba cannot be imported (" in caplog.text and "everything runs on torch alone" in caplog.text
        with pytest.raises(ValueError, match="kernels: compiled cannot run: numba cannot be imported"):
            using("compiled").__enter__()
    finally:
        choice._compiled.cache_clear()

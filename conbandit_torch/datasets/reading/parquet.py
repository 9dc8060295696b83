"""Reading tables in Parquet piece by piece, as `read_table` reads text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from conbandit_torch.core.errors import DataError
from conbandit_torch.datasets.reading.faults import (
    LARGEST,
    LINE,
    REAL,
    TEXT,
    WHOLE,
    expect_columns,
    expect_once,
)

if TYPE_CHECKING:
    import pandas as pd


def read_parquet(
    path: Path, columns: dict[str, str], optional: dict[str, str] | None = None
) -> Iterator[pd.DataFrame]:
    """A table in Parquet, piece by piece; `LINE` is the row."""
    import pandas as pd

    if find_spec("pyarrow") is None:
        raise DataError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow")
    import pyarrow
    from pyarrow.parquet import ParquetFile

    kinds, first = columns | (optional or {}), 1
    try:
        with ParquetFile(path) as file:
            expect_once(path, file.schema_arrow.names)
            for batch in file.iter_batches(batch_size=2**18):
                # pandas' own remarks in the file, which may be damaged, are of no use here.
                piece = batch.replace_schema_metadata(None).to_pandas(integer_object_nulls=True)
                expect_columns(path, piece, columns)
                for name in piece.columns:
                    piece[name] = _converted(path, name, piece[name], kinds.get(str(name), TEXT), first)
                piece.insert(0, LINE, np.arange(first, first + len(piece)))
                first += len(piece)
                yield piece
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not a Parquet file, or a damaged one ({reason})") from None
    if first == 1:
        yield pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in {LINE: WHOLE, **columns}.items()})


def _converted(path: Path, name: str, values: pd.Series[Any], kind: str, first: int) -> pd.Series[Any]:
    import pandas as pd

    if kind == TEXT:
        return pd.Series([_text(value) for value in values], values.index, dtype=object)
    if pd.api.types.is_datetime64_any_dtype(values):
        numbers = (values - pd.Timestamp(0, tz=values.dt.tz)).dt.total_seconds() // 1
    else:
        numbers = pd.to_numeric(values, errors="coerce")
    bad = ~(numbers.abs() <= (LARGEST if kind == REAL else 2**62))
    if kind == WHOLE:
        bad |= numbers != numbers.round()
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        expected = f"a {'whole ' if kind == WHOLE else ''}number"
        raise DataError(f"{path}: row {first + row}: {name}: expected {expected}, got {values.iloc[row]!r}")
    return numbers.astype(np.dtype(kind))


def _text(value: Any) -> str:
    """A value as a CSV file would have it: a list as JSON, null empty, 3.0 (an id among nulls) as 3."""
    if isinstance(value, np.ndarray | list):
        return json.dumps([_text(one) for one in value])
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)

"""Tables in pieces: CSV by the csv module, Parquet by pyarrow where it is installed. No more than a
piece is in memory."""

from __future__ import annotations

import csv
import gzip
import io
import pathlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import DataError

ROWS_AT_ONCE = 1 << 16


@dataclass
class Piece:
    """Some rows of a table. `lines`: where each begins, as an editor counts; of Parquet the number
    of the row, from 0. Cells are texts of CSV, Python's values of Parquet, and None where there is
    nothing."""

    file: pathlib.Path
    noun: str
    lines: list[int]
    columns: dict[str, list[Any]]

    def __len__(self) -> int:
        return len(self.lines)

    def fail(self, row: int, column: str, message: str) -> NoReturn:
        raise DataError(f"{self.file}, {self.noun} {self.lines[row]}, column {column!r}: {message}")


def pieces(path: pathlib.Path, columns: list[str], rows: int = ROWS_AT_ONCE) -> Iterator[Piece]:
    """These columns, each once however often it is named."""
    columns = list(dict.fromkeys(columns))
    if not path.is_file():
        raise DataError(f"{path} is " + ("no file" if path.exists() else "not there"))
    if path.suffix in (".parquet", ".pq"):
        yield from _of_parquet(path, columns, rows)
    else:
        yield from _of_csv(path, columns, rows)


def _check_columns(path: pathlib.Path, found: list[str], wanted: list[str]) -> None:
    for column in wanted:
        if column not in found:
            raise DataError(
                f"{path} has no column {column!r}; it has {', '.join(map(repr, found))}"
            )
        if found.count(column) > 1:
            raise DataError(
                f"{path} has {found.count(column)} columns {column!r}; give each a name of its own"
            )


def _records(path: pathlib.Path, file: io.TextIOBase) -> Iterator[tuple[int, list[str]]]:
    """(line on which it begins, cells) of each record that is not empty."""
    reader = csv.reader(file, delimiter="\t" if ".tsv" in path.suffixes else ",", strict=True)
    line = 1
    try:
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1
    except csv.Error as problem:
        raise DataError(f"{path}, line {line}: {problem}") from None
    except UnicodeDecodeError as problem:
        raise DataError(
            f"{path}, after line {line}: is not UTF-8: {problem.reason}; write it anew in UTF-8"
        ) from None
    except (EOFError, gzip.BadGzipFile, OSError) as problem:
        raise DataError(f"{path}, after line {line}: {problem}") from None


def _of_csv(path: pathlib.Path, columns: list[str], rows: int) -> Iterator[Piece]:
    opened: Any = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")
    with opened, io.TextIOWrapper(opened, encoding="utf-8-sig", newline="") as file:
        records = _records(path, file)
        _, header = next(records, (0, None))
        if header is None:
            raise DataError(f"{path} is empty; its first line names the columns")
        _check_columns(path, header, columns)
        places = [header.index(column) for column in columns]
        lines: list[int] = []
        cells: list[list[str | None]] = [[] for _ in columns]
        for line, record in records:
            if len(record) != len(header):
                raise DataError(
                    f"{path}, line {line}: has {len(record)} cells, but the first line names "
                    f"{len(header)} columns"
                )
            lines.append(line)
            for column, place in zip(cells, places):
                column.append(record[place] or None)
            if len(lines) == rows:
                yield Piece(path, "line", lines, dict(zip(columns, cells)))
                lines, cells = [], [[] for _ in columns]
        if lines:
            yield Piece(path, "line", lines, dict(zip(columns, cells)))


def _of_parquet(path: pathlib.Path, columns: list[str], rows: int) -> Iterator[Piece]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            f"{path}: Parquet wants pyarrow (pip install pyarrow); or write it as CSV"
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as problem:
        raise DataError(f"{path} is no Parquet, or damaged: {problem}") from None
    with file:
        _check_columns(path, file.schema_arrow.names, columns)
        begin = 0
        for batch in file.iter_batches(batch_size=rows, columns=columns):
            yield Piece(
                path,
                "row",
                list(range(begin, begin + len(batch))),
                {name: batch.column(name).to_pylist() for name in columns},
            )
            begin += len(batch)

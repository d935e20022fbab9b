"""espalier-tables shop.toml [-o shop.h5] [--like weights.h5] [--overwrite]: makes a graph file of
CSV and Parquet tables, and of arrays and texts as `espalier import` reads them.

Exit codes: 0 done, 2 usage, 3 tables that cannot be read or do not fit together.
"""

from __future__ import annotations

import argparse
import sys
import warnings

from ..errors import DataError
from .build import from_tables


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="espalier-tables",
        description=(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "description",
        help="the TOML file that says which tables and columns there are: docs/data.md",
    )
    parser.add_argument(
        "-o", "--output", help="the graph file to write, in place of the description's"
    )
    parser.add_argument(
        "--like",
        metavar="WEIGHTS",
        help="weights.h5 of a training, or its graph file: features get the columns, the fill and the "
        "scale that they had there",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a file that exists")
    said = parser.parse_args(arguments)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            written = from_tables(
                said.description, said.output, like=said.like, overwrite=said.overwrite
            )
        except (DataError, OSError) as problem:
            message = str(problem).replace("overwrite=True", "--overwrite")
            print(f"espalier-tables: error: {message}", file=sys.stderr)
            return 3
    for warning in caught:
        print(f"espalier-tables: warning: {warning.message}", file=sys.stderr)
    print(f"wrote {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Small tables, and the command that reads them."""

import contextlib
import csv
import io

from tests.app.program import FolderTest, arrays_of
from tests.python import DataTest

import espalier
from espalier.tables import command


def text_of(rows, line_end="\n", **options):
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end, **options).writerows(rows)
    return text.getvalue()


def described(said):
    """Vertices of v.csv, whose id is "id", with what else is said of them, and edges of e.csv."""
    ends = "".join(f'{end} = {{ type = "v", column = "{end[0]}" }}\n' for end in ("source", "target"))
    return f'[types.v]\nfile = "v.csv"\nid = "id"\n{said}\n[relations.e]\nfile = "e.csv"\n{ends}'


class TablesTest(DataTest, FolderTest):
    def put(self, files):
        """A file of each content: text, bytes, or rows of a table; of None it is gone."""
        for name, content in files.items():
            path = self.folder / name
            if content is None:
                path.unlink(missing_ok=True)
                continue
            content = text_of(content) if isinstance(content, (list, tuple)) else content
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def made(self, files):
        """The arrays of what the first of these describes, the others beside it."""
        self.put(files)
        path = self.folder / next(iter(files))
        espalier.from_tables(path, overwrite=True)
        return arrays_of(path.with_suffix(".h5"))

    def run_tables(self, *arguments):
        """espalier-tables: (exit code, what it prints, errors and warnings)."""
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as errors,
        ):
            code = command.main([str(of) for of in arguments])
        return code, out.getvalue(), errors.getvalue()

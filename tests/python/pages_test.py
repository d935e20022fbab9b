"""docs/data.md, docs/graph-file.md, docs/python.md: every block runs, in the order of the pages, in
one folder; what they promise is so.

Blocks of `python` and `sh` run; those of other languages are files, named by the last `NAME` before
them.
"""

import os
import re
import subprocess
import sys

import numpy as np

from tests.app.program import PROGRAM, ROOT, FolderTest, arrays_of, environment_apart
from tests.python import LIBRARY

import espalier

PAGE = (ROOT / "docs" / "data.md").read_text()
FORMAT = (ROOT / "docs" / "graph-file.md").read_text()
JOBS = (ROOT / "docs" / "python.md").read_text() if LIBRARY.exists() else ""
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)


class Page(FolderTest):
    def run_block(self, language, text):
        command = {
            "python": [sys.executable, "-W", "ignore", "-c", text],
            "sh": ["bash", "-ec", text],
        }[language]
        programs = self.folder / "bin"
        with environment_apart() as environment:
            environment |= {
                "PATH": f"{programs}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT / "python"),
                "OMP_NUM_THREADS": "1",
            }
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
        self.assertEqual(done.returncode, 0, f"{text}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def test_every_block(self):
        self.script("bin/espalier", f'#!/bin/sh\nexec "{PROGRAM}" "$@"\n')
        tables = f'"{sys.executable}" -m espalier.tables.command'
        self.script("bin/espalier-tables", f'#!/bin/sh\nexec {tables} "$@"\n')
        ran, printed = [], ""
        for block in [block for page in (PAGE, FORMAT, JOBS) for block in BLOCK.finditer(page)]:
            language, text = block.groups()
            if language in ("python", "sh"):
                printed += self.run_block(language, text)
                ran.append(language)
            else:
                name = re.findall(r"`([\w.]+)`", PAGE[: block.start()])[-1]
                (self.folder / name).write_text(text)
        self.assertEqual((ran.count("python"), ran.count("sh")), (10 if JOBS else 9, 9))
        lines = (self.folder / "kinds.csv").read_text().splitlines()
        self.assertEqual([line.split(",")[0] for line in lines], ["id", "A-1", "A-2", "B-7"])
        predictions = [(self.folder / name).read_bytes() for name in ("kinds.csv", "tonight.csv")]
        self.assertEqual(*predictions)  # of the same tables
        described = [arrays_of(self.folder / name) for name in ("market.h5", "same.h5")]
        for name in described[0] | described[1]:
            np.testing.assert_array_equal(*(arrays[name] for arrays in described), name)
        predictions = espalier.read_predictions(self.folder / "rows.h5")
        self.assertGreater(predictions.accuracy("test"), 0.85)
        for words in (
            "follows.h5: 3 vertices, 3 edges",
            "hand.h5 now has these digests",
            "shop.h5: 5 vertices, 8 edges, 4 features of item, 1 features of customer",
            "1 to train; 1 to valid; 0 to test",
            "2 types (item 3, customer 2), target item",
            "undirected (each both ways)",
            "clean.h5: 2 vertices, 2 edges",
            "market.h5: 11 vertices of 3 types, 22 edges in 5 relations, 2 features, 2 classes",
            "edge times   customer.bought.item: 19650 to 19702",
        ):
            self.assertIn(words, printed)

    def test_from_arrays_to_accuracy_is_short(self):
        """Ten lines of Python and three commands, pip included."""
        blocks = [text for language, text in BLOCK.findall(PAGE)[:4] if language != "toml"]
        statements = [
            line
            for line in (blocks[0] + blocks[2]).splitlines()
            if line.strip() and not line.startswith((" ", "import"))
        ]
        self.assertLessEqual(len(statements), 10)
        commands = [line for line in blocks[1].splitlines() if line.startswith("espalier")]
        self.assertEqual(len(commands), 2)

    def test_from_tables_to_predictions_is_short(self):
        """25 lines of TOML and four commands, pip included."""
        section = PAGE[PAGE.index("## Tables") : PAGE.index("## Edge lists")]
        blocks = BLOCK.findall(section)
        lines = "".join(text for language, text in blocks if language == "toml").splitlines()
        self.assertLessEqual(len(lines), 25)
        commands = [text for language, text in blocks if language == "sh"]
        self.assertEqual([len(text.splitlines()) for text in commands], [3, 2])

    def test_every_column_is_on_the_page_of_the_format(self):
        table = (ROOT / "src" / "graph" / "column_table.cpp").read_text()
        columns = re.findall(r'\{Column::k\w+, Of::k\w+, "(\w+)", "([\w/]+)"', table)
        self.assertGreater(len(columns), 15)
        lines = [line for line in FORMAT.splitlines() if line.startswith("| `/")]
        for folder, name in columns:
            named = re.compile(rf"`/{folder}/(\w+/)*{name}`|`/{folder}/.*`{name.split('/')[-1]}`")
            self.assertTrue(any(map(named.search, lines)), f"/{folder}/{name}")

    def test_the_table_names_all_arguments(self):
        import inspect

        said = set(re.findall(r"`(\w+)", PAGE)) | set(re.findall(r"(\w+)=", PAGE))
        for name in inspect.signature(espalier.write_graph).parameters:
            if name not in ("path", "edge_index", "num_nodes", "name", "source"):
                self.assertIn(name, said)

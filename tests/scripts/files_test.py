"""scripts/check_files.py: what git has is text, and small.

Law: a file that is binary, or large, is named, but where the script knows it; what git does not have is not asked.
"""

import shutil
import subprocess
import unittest

from tests.app.program import ROOT, FolderTest, run_python

WHEEL = b"PK\3\4\0"


@unittest.skipUnless(shutil.which("git"), "no git here")
class CheckFiles(FolderTest):
    def setUp(self):
        super().setUp()
        self.git("init", "-q")

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.folder, check=True)

    def problems(self):
        done = run_python(ROOT / "scripts/check_files.py", cwd=self.folder)
        return done.returncode, done.stdout + done.stderr

    def add(self, name, data, tracked=True):
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_bytes(data)
        if tracked:
            self.git("add", "-f", name)

    def test_texts_and_files_that_are_known(self):
        self.add("a.cpp", "// é\n".encode() * 100)
        self.add("docs/picture.png", WHEEL)
        self.add("built.whl", WHEEL, tracked=False)
        self.add("gone.whl", WHEEL)
        (self.folder / "gone.whl").unlink()
        self.assertEqual(self.problems(), (0, "files ok\n"))

    def test_what_is_binary_or_large(self):
        self.add("scripts/picture.png", WHEEL)
        self.add("a name.whl", b"x" * 70000 + WHEEL)
        self.add("docs/table.csv", b"x" * 1_000_001)
        self.add("docs/other.csv", b"x" * 1_000_000)
        code, said = self.problems()
        self.assertEqual((code, [line[:line.index(";")] for line in said.splitlines()]),
                         (1, ["a name.whl: is no text", "docs/table.csv: has 1000001 bytes", "scripts/picture.png: is no text"]))

    def test_without_git(self):
        shutil.rmtree(self.folder / ".git")
        self.assertEqual(self.problems(), (0, "files: not a clone of git; skipped\n"))

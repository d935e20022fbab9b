"""make check-rooms finds what breaks the order of rooms, and a second list of keys."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_rooms.py"


class CheckRooms(unittest.TestCase):
    def check(self, name, text):
        """What is said of a tree with the table of keys and this file."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for room in ("include/espalier/base", "src/base", "src/app"):
                (root / room).mkdir(parents=True)
            (root / "src/base/config_keys.cpp").write_text(
                'Key{"model.hidden", kShape}, Key{"model.layers", kShape}, Key{"run.threads", kCost}')
            (root / name).write_text(text)
            done = subprocess.run([sys.executable, SCRIPT, "base", "app"], cwd=root, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode != 0, "src/" in done.stdout, done.stdout)
            return done.stdout if done.returncode else ""

    def test_the_order_of_rooms(self):
        self.assertEqual(self.check("src/app/a.cpp", '#include "espalier/base/x.hpp"\n'), "")
        self.assertIn("comes after it", self.check("src/base/b.cpp", '#include "espalier/app/x.hpp"\n'))

    def test_a_second_list_of_keys(self):
        two = 'f("model.hidden"); f("run.threads");'
        self.assertEqual(self.check("src/app/a.cpp", two + '// "model.layers"'), "")
        self.assertIn("a list of keys", self.check("src/app/a.cpp", two + 'f("model.layers");'))
        self.assertIn("a list of keys", self.check("src/app/a.cpp", 'return key.starts_with("model.");'))


if __name__ == "__main__":
    unittest.main()

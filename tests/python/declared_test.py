"""Declarations for ctypes: what the compiler makes of include/espalier.h, member by member; a header
that changes makes them old.
"""

import ctypes
import re
import shutil
import subprocess
import sys

from tests.app.program import ROOT, FolderTest

from espalier import _declared

HEADER = (ROOT / "include" / "espalier.h").read_text()
SCRIPT = ROOT / "scripts" / "declare_header.py"


class Declared(FolderTest):
    def compiled(self, lines):
        """What a program in C with these lines prints, as numbers by name."""
        source, program = self.folder / "print.c", self.folder / "print"
        body = "\n".join(
            f'  printf("{name} %lld\\n", (long long)({value}));' for name, value in lines
        )
        source.write_text(
            '#include "espalier.h"\n#include <stdio.h>\n'
            f"int main(void) {{\n{body}\n  return 0;\n}}\n"
        )
        command = [
            "cc",
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Werror",
            "-I",
            ROOT / "include",
            source,
            "-o",
            program,
        ]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
        return {name: int(value) for name, value in map(str.split, printed.splitlines())}

    def test_sizes_and_places_are_the_compilers(self):
        lines, ours = [], {}
        for of in _declared.STRUCTURES:
            name = of.__name__
            lines.append((name, f"sizeof({name})"))
            ours[name] = ctypes.sizeof(of)
            for member, _ in of._fields_:
                place, within = getattr(of, member), f"(({name}*)0)->{member}"
                lines += [
                    (f"{name}.{member}", f"offsetof({name}, {member})"),
                    (f"{name}.{member}.size", f"sizeof({within})"),
                ]
                ours |= {f"{name}.{member}": place.offset, f"{name}.{member}.size": place.size}
        for code in re.findall(r"ESPALIER_(\w+) = ", HEADER):
            lines.append((code, f"ESPALIER_{code}"))
            ours[code] = getattr(_declared, code)
        self.assertGreater(len(lines), 150)
        self.assertEqual(self.compiled(lines), ours)

    def test_all_of_the_header_is_there(self):
        structures = set(re.findall(r"typedef struct (\w+) \{", HEADER))
        self.assertEqual({of.__name__ for of in _declared.STRUCTURES}, structures)
        functions = re.findall(r"^ESPALIER_API [^;(]*?(\w+)\(", HEADER, re.M)
        self.assertEqual(list(_declared.FUNCTIONS), functions)

    def test_a_header_that_changed_is_noticed(self):
        for path in (
            "scripts/declare_header.py",
            "include/espalier.h",
            "python/espalier/_declared.py",
        ):
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.folder / path)
        header = self.folder / "include/espalier.h"

        def check(*options):
            command = [sys.executable, self.folder / "scripts/declare_header.py", *options]
            return subprocess.run(command, capture_output=True, text=True, check=False)

        self.assertEqual(check("--check").returncode, 0)
        header.write_text(HEADER.replace("  double scale;", "  float scale;"))
        self.assertIn("python3 scripts/declare_header.py", check("--check").stderr)
        self.assertEqual(check().returncode, 0)
        self.assertIn(
            '("scale", c_float)', (self.folder / "python/espalier/_declared.py").read_text()
        )
        header.write_text(HEADER.replace("  double scale;", "  double scale[2];"))
        self.assertNotEqual(check("--check").returncode, 0)

"""scripts/wrap_comments.py on comments of a few lines.

Laws: only paragraphs with a line of more than 100 columns change; lists hang, tables and drawings stay
and are reported; a comment after code finds a place where it fits; the second time nothing changes; nor
do the code and the words ever.
"""

import pathlib
import subprocess
import tempfile
import unittest

import wrap_comments
from tests.app.program import ROOT, run_python

SCRIPT = ROOT / "scripts" / "wrap_comments.py"
LONG = "seven words that are here twice over " * 3  # 111 columns


class WrapComments(unittest.TestCase):
    def check(self, before, after):
        """`before` is wrapped as `after`, for good, and reads the same."""
        wrapped = wrap_comments.wrapped(before)
        self.assertEqual(wrapped, after)
        self.assertEqual(wrap_comments.wrapped(wrapped), wrapped)
        self.assertEqual(wrap_comments.code_and_words(wrapped), wrap_comments.code_and_words(before))
        return list(wrap_comments.too_wide(wrapped))

    def stays(self, text):
        return self.check(text, text)

    def test_prose_is_filled_by_the_paragraph(self):
        short = "  // An own paragraph,\n  // though ragged.\n  //\n"
        wide = self.check(f"{short}  // First. {LONG}\n  // and more.\n  int x;\n",
                          f"{short}  // First. " + "seven words that are here twice over " * 2 + "seven words\n"
                          "  // that are here twice over and more.\n  int x;\n")
        self.assertEqual(wide, [])

    def test_the_marker_and_the_end_of_a_sentence_divide(self):
        self.check(f"/// Ends here.\n/// Law: {LONG}\n// other marker\n",
                   "/// Ends here.\n/// Law: " + "seven words that are here twice over " * 2 + "seven words that\n"
                   "/// are here twice over\n// other marker\n")

    def test_the_last_line_is_no_lost_word(self):
        wrapped = wrap_comments.wrapped("// " + "word " * 19 + "lost.\n").split("\n")
        self.assertEqual(wrapped, ["// " + ("word " * 18).strip(), "// word lost.", ""])

    def test_brackets_code_and_operators_are_not_divided(self):
        for together in ("[rows, columns]", "`a = b`", "[0, n)", "x =", "number 2."):
            for length in range(80, 100):
                text = wrap_comments.wrapped(f"// {'x' * length} {together} and what follows it, long enough\n")
                self.assertIn(together, text)

    def test_a_list_hangs(self):
        self.check(f"// - one\n// - {LONG}\n//   its end\n// - three\n",
                   "// - one\n// - " + "seven words that are here twice over " * 2 + "seven words that are\n"
                   "//   here twice over its end\n// - three\n")
        self.check(f"// 1. {LONG}\nf();\n", "// 1. " + "seven words that are here twice over " * 2
                   + "seven words that are\n//    here twice over\nf();\n")

    def test_tables_and_drawings_stay_and_are_reported(self):
        for fixed in (f"key    {LONG}", f"y = x    {LONG}", f"a ─► b {LONG}", f"---- banner {'-' * 90}"):
            self.assertEqual(self.stays(f"// Above.\n// {fixed.strip()}\n"), [(2, len(fixed.strip()) + 3)])
        self.assertEqual(self.stays(f"//     y = x {LONG.strip()}\n// Below.\n"), [(1, 13 + len(LONG.strip()))])
        self.stays("// ranks: " + "1 " * 50 + "2\n")

    def test_a_members_comment_goes_on_below_itself(self):
        self.check(f"struct A {{\n  int x;  ///< {LONG}\n}};\n",
                   "struct A {\n  int x;  ///< " + "seven words that are here twice over " * 2 + "seven words\n"
                   "          ///< that are here twice over\n};\n")

    def test_comments_in_a_column_stay_in_it(self):
        self.check(f"int x;  // short\nint y;  // {LONG}\n",
                   "int x;  // short\nint y;  // " + "seven words that are here twice over " * 2
                   + "seven words\n        // that are here twice over\n")

    def test_100_columns_are_not_too_many(self):
        self.assertEqual(self.stays(f"// {'x' * 48} {'y' * 48}\n"), [])
        self.check(f"// {'x' * 48} {'y' * 49}\n", f"// {'x' * 48}\n// {'y' * 49}\n")

    def test_a_declaration_torn_by_its_comment_is_joined(self):
        self.check("struct A {\n  std::vector<int>\n      x;  ///< short by now\n};\n",
                   "struct A {\n  std::vector<int> x;  ///< short by now\n};\n")

    def test_a_comment_without_room_moves_above_its_statement(self):
        code = f"  int {'x' * 60} =\n      function_of({'y' * 30});"
        self.check(f"  f();\n{code}  // a remark that is too long for what remains of it all\n",
                   f"  f();\n  // A remark that is too long for what remains of it all.\n{code}\n")
        self.check(f"  int {'x' * 60};  ///< (symbols stay) as they are in a comment that moves\n",
                   f"  /// (symbols stay) as they are in a comment that moves\n  int {'x' * 60};\n")

    def test_a_comment_after_a_brace_moves_into_the_block(self):
        self.check(f"  if ({'x' * 60}) {{  // what is done here and then again and again\n    f();\n",
                   f"  if ({'x' * 60}) {{\n    // What is done here and then again and again.\n    f();\n")

    def test_a_word_without_end_stays(self):
        url = "https://example.org/" + "x" * 100
        self.assertEqual(self.check(f"// See {url}.\n", f"// See\n// {url}.\n"), [])
        self.assertEqual(self.stays(f"// {url}\n"), [])

    def test_what_only_looks_like_a_comment_stays(self):
        self.stays(f'const char* a = "http://{LONG}";\nconst char* b = R"(// {LONG}\n)";\nint c = 1\'000; // d\n')

    def test_check_lists_what_is_too_wide_and_writes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.cpp")
            path.write_text(f"int x;\n// {LONG}\n", encoding="utf-8")
            done = run_python(SCRIPT, "--check", path)
            self.assertEqual((done.returncode, done.stdout), (1, f"{path}:2: a comment ends in column 114\n"))
            self.assertEqual(path.read_text(encoding="utf-8"), f"int x;\n// {LONG}\n")
            self.assertEqual(run_python(SCRIPT, path).returncode, 0)
            done = run_python(SCRIPT, "--check", path)
            self.assertEqual((done.returncode, done.stdout), (0, "comments ok\n"))

    def test_against_finds_a_changed_word_and_changed_code(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.cpp")

            def git(*arguments):
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a", *arguments], cwd=folder, check=True,
                               stdout=subprocess.PIPE)

            def against():
                return run_python(SCRIPT, "--check", "--against", "HEAD", "a.cpp", cwd=folder).returncode

            path.write_text("// some words\nint x;\n", encoding="utf-8")
            git("init", "-q")
            git("add", "a.cpp")
            git("commit", "-qm", "a")
            for text, code in (("// some\n// words\nint  x;\n", 0), ("// same words\nint x;\n", 1),
                               ("// some words\nint y;\n", 1)):
                path.write_text(text, encoding="utf-8")
                self.assertEqual(against(), code, text)

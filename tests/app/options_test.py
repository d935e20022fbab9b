"""Numbers on the command line: every option of every command, in the words of one sentence.

Law: what is no number, or lies outside its range, is refused with exit code 2 and one sentence that names the option, what was
given and the range; nothing is rounded, cut off at the largest integer or read in another base.
"""

from tests.app.program import ProgramTest, awkward_graph, espalier

HUGE = "99999999999999999999"
WHOLE = ("-1", "-" + HUGE, "x", "1.5", "0x10", "", "+5")
REAL = ("nan", "inf", "1e400", "x", "1,5")


class Numbers(ProgramTest):
    JOB = ()

    def refuse(self, option, value, *command):
        """`--option=value`, so that a value that starts with a minus is one."""
        code, output = espalier(*command, f"{option}={value}" if value else option, *([""] if not value else []), timeout=30)
        self.assertEqual(code, 2, (command, option, value, output))
        self.assertEqual(len(output.strip().splitlines()), 1, output)
        self.assertTrue(output.startswith(f"espalier: error: {option} {value or 'is empty'}: give a "), output)
        self.assertLess(len(output), 150, output)

    def test_every_option(self):
        graph, config = self.graph, self.config
        awkward_graph(graph)
        new = ("-o", self.folder / "new.h5")
        whole = [(("generate", "rmat", *new), ("--scale", "0", "41"), ("--edge-factor", "0"), ("--features", "1048577"),
                  ("--classes", "0"), ("--seed", "-1", "9223372036854775808")),
                 (("generate", "planted", *new), ("--nodes", "-1"), ("--seed",)),
                 (("prepare", graph, "--split-links", "0.8,0.1,0.1", *new), ("--seed", "-1")),
                 (("info", graph), ("--ranks", "0", "1048577"), ("--replication",)),
                 (("sample", config), ("--epochs", "0", "-1")),
                 (("infer", config, "--checkpoint", "weights.h5", *new), ("--layer", "0", "65")),
                 (("plan", config), ("--ranks", "0")),
                 (("plan", config, "--ranks", 2), ("--draw", "-1")),
                 (("import", "edges", graph, *new), ("--vertices", "0", "1099511627777"))]
        for command, *options in whole:
            for option, *values in options:
                for value in values + (list(WHOLE) if option == "--scale" else [HUGE]):
                    self.refuse(option, value, *command)
        for option, values in (("--degree", REAL), ("--homophily", ("2", "nan"))):
            for value in values:
                self.refuse(option, value, "generate", "planted", *new)
        for command in (("generate", "planted", *new), ("generate", "rmat", *new), ("info", graph), ("digest", graph), ("partition", graph),
                        ("import", "ogb", self.folder, *new), ("import", "mag240m", self.folder, *new),
                        ("import", "triples", "--train", graph, *new),
                        ("import", "edges", graph, *new), ("import", "matrixmarket", graph, *new), ("prepare", graph, "--split-links", "0.8,0.1,0.1", *new)):
            for value in REAL + ("-1", "-inf", "1e7") if command[0] == "info" else ("nan", "inf"):
                self.refuse("--stall-minutes", value, *command)
        self.succeed("info", graph, "--stall-minutes=0.5")
        self.assertFalse((self.folder / "new.h5").exists())
        self.assertFalse((self.folder / "graph.order.h5").exists())

    def test_numbers_are_decimal(self):
        output = self.succeed("generate", "rmat", "--scale", "010", "--edge-factor", 1, "--seed", 2**63 - 1, "-o", self.folder / "new.h5")
        self.assertIn("1024 vertices", output, "010 is ten, not eight")

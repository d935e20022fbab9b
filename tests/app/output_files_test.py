"""What -o may and may not replace.

Laws: a file that exists is replaced by import and generate with --overwrite only; an input never, however it is spelled; plan
and calibrate replace plans and machine files only; devices, pipes and sockets are no files; a refusal comes before the work
and changes no byte. Links that lead nowhere and files that appear meanwhile are base/output_file_test's.
"""

import json
import os
import socket

from tests.app.program import ProgramTest, job_text, write_graph

GENERATE = ("generate", "planted", "--nodes", 40, "--classes", 2, "--degree", 3, "--features", 2)
MACHINE = 'format = "espalier-machine"\nversion = 1\nname = "by hand"\n'


def tree(folder):
    """The bytes of every file below a folder, by path."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class OutputTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.ogb, self.output = self.folder / "ogb", self.folder / "graph.h5"
        (self.ogb / "raw").mkdir(parents=True)
        (self.ogb / "split" / "one").mkdir(parents=True)
        for name, text in (("raw/num-node-list.csv", "4\n"), ("raw/edge.csv", "0,1\n1,2\n"), ("raw/node-label.csv", "0\n1\n0\n1\n"),
                           ("split/one/train.csv", "0\n"), ("split/one/valid.csv", "1\n"), ("split/one/test.csv", "2\n"),
                           ("meta.json", "{}"), ("mapping.txt", "names\n")):
            (self.ogb / name).write_text(text)

    def device(self):
        """A device by a name in the test's own folder: a program that renames a file onto it, as root, replaces the link. Never
        give a program under test the name of a real device to write to."""
        link = self.folder / "device"
        link.symlink_to("/dev/full")
        return link

    def import_to(self, path, *options):
        return ("import", "ogb", self.ogb, "-o", path, *options)

    def refuse(self, words, *arguments, **options):
        """Exit code 2 and no byte of any file changed."""
        before = tree(self.folder)
        output = self.fail_with(2, words, *arguments, **options)
        self.assertEqual(tree(self.folder), before)
        return output


class Graphs(OutputTest):
    def test_an_existing_file_needs_overwrite(self):
        for command, ranks in ((self.import_to(self.output), 2), ((*GENERATE, "-o", self.output), 1)):
            self.output.write_text("years of work\n")
            self.refuse([str(self.output), "exists already", "--overwrite"], *command, ranks=ranks)
            self.succeed(*command, "--overwrite")
            self.assertIn("vertices", self.succeed("info", self.output))
            self.refuse(["--overwrite"], *command)

    def test_an_input_is_never_an_output(self):
        edges = self.ogb / "raw" / "edge.csv"
        soft, hard = self.folder / "soft.h5", self.folder / "hard.h5"
        soft.symlink_to(edges)
        os.link(edges, hard)
        (self.folder / "other").symlink_to(self.ogb)
        for path in (edges, soft, hard, os.path.relpath(edges), self.folder / "other" / "raw" / "edge.csv", self.ogb / "meta.json",
                     self.ogb / "split" / "one" / "train.csv", self.ogb / "mapping.txt"):
            self.refuse(["is an input", "another"], *self.import_to(path, "--overwrite"))
        self.refuse(["is an input", "another"], *self.import_to(soft))

    def test_folders_of_inputs_take_no_output(self):
        for path in (self.ogb / "raw" / "node-feat.csv", self.ogb / "split" / "one" / "graph.h5", self.ogb / "raw" / ".." / "raw" / "g.h5"):
            self.refuse(["holds the input", "another"], *self.import_to(path, "--overwrite"))

    def test_a_graph_file_beside_the_inputs_is_none(self):
        self.succeed(*self.import_to(self.ogb / "graph.h5"))
        self.refuse(["--overwrite"], *self.import_to(self.ogb / "graph.h5"))
        self.succeed(*self.import_to(self.ogb / "graph.h5", "--overwrite"))

    def test_inputs_that_are_links_themselves(self):
        store = self.folder / "store"
        (self.ogb / "raw").rename(store)
        (self.ogb / "raw").symlink_to(store)
        self.refuse(["is an input"], *self.import_to(store / "edge.csv", "--overwrite"))
        self.refuse(["holds the input"], *self.import_to(store / "new.csv"))

    def test_what_is_no_file(self):
        pipe, door, device = self.folder / "pipe", self.folder / "door", self.device()
        os.mkfifo(pipe)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(door))
            for path, words in ((device, "device"), (pipe, "pipe"), (door, "socket")):
                for command in (self.import_to(path, "--overwrite"), (*GENERATE, "-o", path), ("calibrate", "-o", path)):
                    self.fail_with(2, [f"is a {words}", "give"], *command, timeout=20)
        self.assertTrue(device.is_symlink())


class PlansAndMachines(OutputTest):
    def setUp(self):
        super().setUp()
        self.output = self.folder / "out"
        write_graph(self.graph, [[1], [2], [0]], [[1.0], [2.0], [3.0]], [0, 1, 0], [0], [1], [2])
        self.config.write_text(job_text(self.graph, self.output))

    def plan(self, *options):
        return ("-q", "plan", self.config, "--ranks", 2, *options)

    def test_plan_replaces_plans_only(self):
        notes, plan, empty = self.folder / "notes.json", self.folder / "plan.json", self.folder / "empty"
        notes.write_text('{"mine": 1}\n')
        for path in (notes, self.config, self.graph):
            self.refuse([str(path), "is not a plan"], *self.plan("-o", path))
        empty.touch()
        for path in (plan, plan, empty):
            self.succeed(*self.plan("-o", path))
            self.assertEqual(json.loads(path.read_text())["command"], "plan")
        for _ in range(2):  # its own place is its own
            self.succeed(*self.plan())
        os.mkfifo(self.folder / "pipe")
        self.fail_with(2, ["is a pipe"], *self.plan("-o", self.folder / "pipe"), timeout=20)
        self.fail_with(2, ["is a device"], *self.plan("-o", self.device()))

    def test_calibrate_replaces_machine_files_only(self):
        notes = self.folder / "notes.toml"
        notes.write_text("# nothing to do with machines\n")
        for path in (notes, self.config, self.graph):
            output = self.refuse([str(path), "is not a machine file"], "calibrate", "-o", path)
            self.assertNotIn("measured by", output, "refused before measuring")

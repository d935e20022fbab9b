"""espalier infer on graphs with types, and what commands say of types.

Laws: rows are the target's unless --types asks for others', a type's in a group of its own, counted within the type; they are the same
bits whichever types are asked for, on every grid, in any chunks, owned by ranges or by an order; what is predicted for the target is
as right as the report of the training says, by the lines of docs/typed-graphs.md too; each file says whose rows it holds, and which
of them no loss has read.
"""

import pathlib
import re
import shlex
import shutil
import tempfile

import h5py
import numpy as np

from tests.app.other_formats import ogb_typed_csv
from tests.app.plain_graph import read_graph
from tests.app.program import LONG, ROOT, ProgramTest, arrays_of, espalier, forget_digests, job_text, needs_emulation, on_gpus, put, run_python
from tests.app.typed_test import JOB

SIZES = {"author": 300, "paper": 800, "field": 5}  # the target is not the first
WITHOUT_TYPES = ("generate", "planted", "--nodes", 400, "--features", 8, "--classes", 3)


class TypedInferTest(ProgramTest):
    JOB = JOB

    def setUp(self):
        super().setUp()
        self.rows = self.folder / "rows.h5"
        self.generate()

    def generate(self, *more):
        """The first type of `generate` is the target: its place in the list is changed afterwards."""
        self.make_once(self.graph, ("generate", "planted", "--types", "paper=800:12,author=300,field=5", "--relations",
                                    "author.writes.paper=2000,paper.cites.paper=3000,paper.about.field=800", "--classes", 5, *more))
        graph = read_graph(self.graph)
        graph.vertices = {name: graph.vertices[name] for name in SIZES}
        with tempfile.TemporaryDirectory() as folder:
            self.succeed("-q", *ogb_typed_csv(graph, pathlib.Path(folder), None), "-o", self.graph, "--overwrite")

    def infer(self, *options, **run):
        """({name: array}, {group: attributes})"""
        data, about = self.inferred("grid.replication=1", *options, config=self.output / "config.toml", **run)
        with h5py.File(self.rows) as file:
            groups = {name: dict(group.attrs) for name, group in file["types"].items()} if "types" in file else {}
        return data, {"/": about, **{f"types/{name}": attributes for name, attributes in groups.items()}}

    def refused(self, code, words, *options, config=None, **run):
        self.fail_with(code, words, *self.infer_words(*options, config=config or self.output / "config.toml"), **run)
        self.assertFalse(self.rows.exists())

    def check_scores(self, predictions, report):
        """Exactly those of the report."""
        with h5py.File(self.graph) as file:
            right = predictions == file["nodes/paper/labels"][:]
            for split in ("train", "test"):
                of_split = right[file[f"split/paper/{split}"][:]]
                self.assertEqual(of_split.sum() / len(of_split), report[split]["accuracy"], split)

    def nodes(self, *ids):
        path = self.folder / "nodes.txt"
        path.write_text("\n".join(map(str, ids)))
        return path


class Rows(TypedInferTest):
    def test_of_the_target_are_as_right_as_the_report_says(self):
        for kind, ranks in (("rgcn", 2), ("hgt", 1), ("sage", 3), ("gat", 2)):
            with self.subTest(kind=kind):
                report = self.train(f"model.kind={kind}", *(() if kind == "rgcn" else ("model.bases=8",)))
                data, about = self.infer("--predictions", "--metrics", ranks=ranks)
                self.assertEqual(set(data), {"logits", "predictions"})
                self.assertEqual(data["logits"].shape, (SIZES["paper"], 5))
                self.check_scores(data["predictions"], report)
                np.testing.assert_array_equal(data["predictions"], data["logits"].argmax(1))
                self.assertEqual((about["/"]["target"], about["/"]["types"]), (b"paper", b"paper"))
                self.assertEqual(about["/"]["test_accuracy"], report["test"]["accuracy"])
                whole, about = self.infer("--types", "all", "--predictions", "--metrics", ranks=ranks)
                self.assertEqual(set(whole), {f"types/{name}/logits" for name in SIZES} | {"types/paper/predictions"})
                self.check_scores(whole["types/paper/predictions"], report)
                self.assertEqual(whole["types/paper/logits"].tobytes(), data["logits"].tobytes())
                self.assertEqual((about["/"]["target"], about["/"]["types"]), (b"paper", b"author,paper,field"))
                self.assertEqual(about["/"]["test_accuracy"], report["test"]["accuracy"])
        self.assertGreater(report["test"]["accuracy"], 0.3)

    def test_the_same_bits_whatever_is_asked_for_on_every_grid(self):
        report = self.train("model.embedding=4", "model.layers=3", "sampler.fanout=[4,3,2]", "model.jumping=concat", ranks=3)
        order = self.order()
        for layer, rows in ((("--layer", 1), "embeddings"), ((), "logits")):
            expected, _ = self.infer(*layer, "--types", "all", "--predictions")
            self.assertEqual({name: len(values) for name, values in expected.items() if name.endswith(rows)},
                             {f"types/{name}/{rows}": size for name, size in SIZES.items()})
            for values in expected.values():
                self.assertGreater(len(np.unique(values, axis=0)), 4, "a dead network shows nothing")
            grids = ((2, "run.memory_limit=600000", "run.memory_check=warn"), (3, order), (4, "grid.replication=2", order),
                     (4, "grid.replication=2"), (3, "grid.topology=replicated"), (8,))
            for ranks, *grid in grids if LONG else grids[bool(layer)::3]:
                with self.subTest(rows=rows, ranks=ranks, grid=grid):
                    found, _ = self.infer(*layer, "--types", "all", "--predictions", *grid, ranks=ranks)
                    self.assertEqual({name: values.tobytes() for name, values in found.items()},
                                     {name: values.tobytes() for name, values in expected.items()})
            for name in list(SIZES) if LONG else list(SIZES)[bool(layer)::2]:
                found, _ = self.infer(*layer, "--types", name, "--half", ranks=3)
                self.assertEqual(set(found), {f"types/{name}/{rows}"})
                self.assertEqual(found[f"types/{name}/{rows}"].tobytes(), expected[f"types/{name}/{rows}"].astype(np.float16).tobytes())
            found, about = self.infer(*layer, "--types", "field,author,field", ranks=2)
            self.assertEqual(set(found), {f"types/author/{rows}", f"types/field/{rows}"})
            self.assertEqual(about["/"]["types"], b"author,field")
            found, _ = self.infer(*layer, "--predictions", ranks=2)
            self.assertEqual(found[rows].tobytes(), expected[f"types/paper/{rows}"].tobytes())
            self.assertEqual(found["predictions"].tobytes(), expected["types/paper/predictions"].tobytes())
        self.check_scores(found["predictions"], report)
        _, about = self.infer("--metrics", ranks=4)
        self.assertEqual((about["/"]["test_accuracy"], about["/"]["weights_digest"].decode()),
                         (report["test"]["accuracy"], report["weights_digest"]))

    def test_nodes_are_counted_within_a_type(self):
        self.train("train.epochs=1")
        whole, _ = self.infer("--types", "all", "--predictions")
        for ranks, *grid in ((1,), (3,), (4, "grid.replication=2")):
            ids = [0, 17, 64, 799]
            found, _ = self.infer("--nodes", self.nodes(799, 0, 64, 17, 0), "--predictions", "--half", *grid, ranks=ranks)
            self.assertEqual(set(found), {"logits", "predictions", "ids"})
            np.testing.assert_array_equal(found["ids"], ids)
            self.assertEqual(found["logits"].tobytes(), whole["types/paper/logits"][ids].astype(np.float16).tobytes())
            np.testing.assert_array_equal(found["predictions"], whole["types/paper/predictions"][ids])
            for name, ids in (("author", [1, 299]), ("field", [4]), ("paper", [301])):
                found, about = self.infer("--types", name, "--nodes", self.nodes(*ids), *grid, ranks=ranks)
                self.assertEqual(set(found), {f"types/{name}/logits", f"types/{name}/ids"})
                np.testing.assert_array_equal(found[f"types/{name}/ids"], ids)
                self.assertEqual(found[f"types/{name}/logits"].tobytes(), whole[f"types/{name}/logits"][ids].tobytes())
                self.assertEqual(about["/"]["types"].decode(), name)

    def test_a_group_says_what_it_is(self):
        def trained(*options):
            _, about = self.infer("--types", "all", *options)
            for name, size in SIZES.items():
                self.assertEqual((about[f"types/{name}"]["type"].decode(), about[f"types/{name}"]["vertices"]), (name, size))
            self.assertEqual([about[f"types/{name}"]["first"] for name in SIZES], [0, 300, 1100])
            return {name for name in SIZES if about[f"types/{name}"]["trained"]}
        self.train("train.epochs=1", "model.layers=3", "sampler.fanout=[3,3,3]")
        self.assertEqual([trained("--layer", layer) for layer in (1, 2, 3)], [set(SIZES), set(SIZES), {"paper"}])
        self.train("train.epochs=1", 'sampler.relation_fanout=["rev_about=0", "about=0"]')
        self.assertEqual(trained("--layer", 1), {"author", "paper"})
        # Fields hear and are not heard.
        self.generate("--no-inverse")
        self.train("train.epochs=1")
        self.assertEqual([trained("--layer", layer) for layer in (1, 2)], [{"author", "paper"}, {"paper"}])
        command = self.infer_words("--overwrite", "--types")
        self.assertRegex(self.succeed(*command, "author,paper", ranks=2), r"warning: .*logits of author.*paper alone")
        self.assertRegex(self.succeed(*command, "all", "--layer", 1), r"warning: .*embeddings of field.*paper alone")
        self.assertNotIn("warning", self.succeed(*command, "author", "--layer", 1))

    def test_of_one_type(self):
        self.succeed("-q", "generate", "planted", "--types", "vertex=500:12", "--relations", "vertex.edge.vertex=3000", "--classes", 5, "-o",
                     self.graph, "--overwrite")
        report = self.train("train.epochs=1")
        data, about = self.infer("--predictions", "--metrics")
        self.assertEqual(about["/"]["test_accuracy"], report["test"]["accuracy"])
        self.assertEqual(data["logits"].shape, (500, 5))
        group, _ = self.infer("--types", "all", "--predictions", "--nodes", self.nodes(3, 77))
        self.assertEqual(group["types/vertex/logits"].tobytes(), data["logits"][[3, 77]].tobytes())

    def test_of_several_labels(self):
        self.generate("--labels", 3)
        self.train("train.task=labels", "train.epochs=1")
        data, _ = self.infer("--predictions", "--types", "paper,field")
        self.assertEqual(set(data), {"types/paper/logits", "types/field/logits", "types/paper/predictions"})
        np.testing.assert_array_equal(data["types/paper/predictions"], data["types/paper/logits"] > 0)

    @needs_emulation
    def test_on_gpus(self):
        self.train("train.epochs=1")
        expected, _ = self.infer("--types", "all", "--predictions")
        for ranks in (1, 3):
            found, about = self.infer("--types", "all", "--predictions", "run.device=cuda", ranks=ranks, **on_gpus(3))
            self.assertEqual(set(found), set(expected))
            for name, values in expected.items():
                np.testing.assert_allclose(found[name], values, rtol=1e-5, atol=1e-5, err_msg=name)
            self.assertEqual(about["/"]["types"], b"author,paper,field")


class Refused(TypedInferTest):
    def test_what_does_not_fit(self):
        self.train("train.epochs=1")
        self.refused(2, ["--types papr", "no vertex type", "author, paper, field"], "--types", "papr", ranks=2)
        self.refused(2, ["--types author,all", "no vertex type", "'all'"], "--types", "author,all")
        self.refused(2, ["names no type"], "--types", "")
        self.refused(2, ["--nodes", "within one type", "author,paper"], "--types", "author,paper", "--nodes", self.nodes(1), ranks=2)
        self.refused(2, ["--predictions", "paper", "--types author"], "--types", "author", "--predictions")
        self.refused(3, ["nodes.txt:1", "300", "type author", "0 to 299"], "--types", "author", "--nodes", self.nodes(300), ranks=2)
        self.refused(3, ["nodes.txt:1", "800", "type paper", "0 to 799"], "--nodes", self.nodes(800))
        # Without labels the weights say which type is the target.
        other = self.folder / "other.h5"
        shutil.copy(self.graph, other)
        put(other, {"nodes/paper/labels": None, "split": None})
        forget_digests(other)
        whole, _ = self.infer("--types", "all")
        self.rows.unlink()
        self.refused(2, ["graph.target", "paper", "author", "put the key back"], f"graph.file={other}", "graph.target=author", ranks=2)
        found, about = self.infer("--types", "all", f"graph.file={other}")
        self.assertEqual({name: values.tobytes() for name, values in found.items()}, {name: values.tobytes() for name, values in whole.items()})
        for target in ((), ("graph.target=paper",)):
            found, about = self.infer(f"graph.file={other}", *target, "--predictions", ranks=2)
            self.assertEqual(found["logits"].tobytes(), whole["types/paper/logits"].tobytes())
            self.assertEqual(about["/"]["target"], b"paper")
        # Of a graph without that type nobody blames a key that is not in the job.
        self.config.write_text(job_text(other, self.output, *JOB))
        papers = {name: of for name, of in arrays_of(other).items() if "/paper/" in name}
        self.put({"types/name": np.array(["author", "essay", "field"], "S"), **dict.fromkeys(papers),
                  **{name.replace("paper", "essay"): of for name, of in papers.items() if not name.startswith("edges/")}}, other)
        self.rows.unlink()
        said = self.fail_with(3, ["weights.h5 was trained for vertices of type \"paper\"", "other.h5 has no such type", "author, essay, field"],
                              *self.infer_words(), ranks=2)
        self.assertNotIn("graph.target =", said)
        self.assertIn("graph.target = \"paper\": graph file", espalier(*self.infer_words("graph.target=paper"))[1])

    def test_a_graph_without_types(self):
        self.make_once(self.graph, WITHOUT_TYPES)
        self.train("model.kind=sage", "model.bases=8", "train.epochs=1")
        for types in ("all", "vertex"):
            self.refused(2, [f"--types {types}", "graph.h5", "no vertex types"], "--types", types, ranks=2)
        data, about = self.infer("--predictions")
        self.assertEqual(set(data), {"logits", "predictions"})
        self.assertFalse({"target", "types"} & set(about["/"]))


class Named(TypedInferTest):
    """Types and target, by the commands."""

    def test_by_train_and_its_report(self):
        output = self.succeed("train", self.config, "train.epochs=1", ranks=2)
        self.assertRegex(output, r"(?m)^graph .*3 types \(author 300, paper 800, field 5\), target paper")
        self.assertNotIn("ignores types", output)
        graph = self.report(self.output)["graph"]
        self.assertEqual([(of["name"], of["nodes"]) for of in graph["types"]], list(SIZES.items()))
        self.assertEqual([of["features"] for of in graph["types"]], [0, 12, 0])
        self.assertEqual(graph["target"], "paper")
        output = self.succeed("train", self.config, "train.epochs=1", "model.kind=gin", "model.bases=8", "run.restart=never", ranks=2)
        self.assertEqual(len(re.findall(r"model\.kind = gin ignores types.*rgcn, rgat, hgt", output)), 1, output)
        output = self.succeed(*self.infer_words("--types", "paper,field", "--predictions", config=self.output / "config.toml"), ranks=2)
        self.assertRegex(output, r"(?m)^graph .*3 types \(author 300, paper 800, field 5\), target paper")
        self.assertIn("ignores types", output)
        self.assertRegex(output, r"wrote .*/types/paper/logits float32 \[800, 5\], /types/paper/predictions, /types/field/logits float32 \[5, 5\] in")
        self.assertRegex(self.succeed("info", self.graph), r"(?m)^target +paper$")

    def test_not_of_a_graph_without_types(self):
        self.make_once(self.graph, WITHOUT_TYPES)
        output = self.succeed("train", self.config, "train.epochs=1", "model.kind=sage", "model.bases=8")
        self.assertNotRegex(output, "types|target")
        self.assertFalse({"types", "target"} & set(self.report(self.output)["graph"]))


class Page(TypedInferTest):
    """docs/typed-graphs.md, run as it stands, on a smaller graph."""

    def test_its_lines_give_the_accuracy_of_the_report(self):
        page = (ROOT / "docs/typed-graphs.md").read_text()
        for folder in ("data", "inputs"):
            (self.folder / folder).mkdir()
        self.graph.rename(self.folder / "data/debian_typed.h5")
        (self.folder / "inputs/debian_typed.toml").write_text(job_text("data/debian_typed.h5", "output/debian_typed", *JOB))
        self.succeed("-q", "train", "inputs/debian_typed.toml", cwd=self.folder)
        accuracy = self.report(self.folder / "output/debian_typed")["test"]["accuracy"]
        commands = re.findall(r"^    \S*espalier (infer .*)$", page.replace("\\\n", " "), re.M)
        self.assertEqual(len(commands), 2)
        self.assertEqual(["--types all" in command for command in commands], [False, True])
        for command in commands:
            self.succeed(*shlex.split(command), cwd=self.folder)
        scripts = re.findall(r"^    import h5py\n(?:    .*\n)+", page, re.M)
        self.assertEqual(len(scripts), 2)
        for script in scripts:
            lines = [line.removeprefix("    ") for line in script.splitlines()]
            self.assertEqual(len(lines), 5)
            self.assertEqual(run_python("-c", "\n".join(lines), cwd=self.folder).stdout.strip(), str(accuracy))

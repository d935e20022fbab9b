"""Outputs come back as they were written: rows, weights, reports, side by side and as a figure.

Laws: arrays are those that h5py finds; a file that is something else, is not there or is damaged is
refused with what to do; the table of several runs has the settings that differ, and no other.
"""

import json
import math

import h5py
import numpy as np

from tests.app.program import FolderTest, ProgramTest, arrays_of
from tests.python import DataTest, needs

import espalier


class OfTheProgram(DataTest, ProgramTest):
    JOB = (
        "model.layers=2",
        "model.hidden=8",
        "sampler.fanout=[5,5]",
        "train.epochs=1",
        "run.threads=1",
    )

    def train(self, *graph):
        self.generate(*graph)
        self.succeed("-q", "train", self.config)

    def generate(self, *graph):
        self.succeed("-q", "generate", "planted", "-o", self.graph, "--overwrite", *graph)

    def test_rows_and_weights(self):
        self.train("--nodes", 60, "--degree", 4, "--features", 3, "--classes", 2)
        logits = self.infer_to("logits.h5", "--predictions")
        hidden = self.infer_to("hidden.h5", "--layer", 1, "--half")
        written, of_logits = arrays_of(logits), espalier.read_rows(logits)
        np.testing.assert_array_equal(of_logits.values, written["logits"])
        np.testing.assert_array_equal(of_logits.predictions, written["predictions"])
        self.assertEqual(
            (of_logits.kind, of_logits.type, of_logits.vertices.tolist(), of_logits.attributes["espalier"]),
            ("logits", None, list(range(60)), espalier.__version__),
        )
        rows = espalier.read_rows(hidden)
        self.assertEqual(
            (rows.kind, rows.values.shape, rows.values.dtype, rows.predictions),
            ("embeddings", (60, 8), np.float16, None),
        )
        found = espalier.read_predictions(logits)
        self.assertEqual(
            (found.ids.tolist(), found.names.tolist()), (list(range(60)), found.classes.tolist())
        )
        for row, of, probability in zip(of_logits.values.tolist(), found.classes, found.probability):
            self.assertAlmostEqual(math.exp(row[of]) / sum(map(math.exp, row)), probability, 5)
        words = "hidden.h5 has no predictions; `espalier infer --predictions` writes them"
        self.refused(words, espalier.read_predictions, hidden)

        weights, config = espalier.read_weights(self.output)
        self.assertEqual(config["model"]["hidden"], 8)
        written = arrays_of(self.output / "weights.h5", "weights")
        self.assertEqual(
            {name: array.tolist() for name, array in weights.items()},
            {name: array.tolist() for name, array in written.items()},
        )
        content = bytearray((self.output / "weights.h5").read_bytes())
        content[-100] ^= 1
        (self.folder / "damaged.h5").write_bytes(content)
        words = "is damaged: its checksum does not fit"
        self.refused(words, espalier.read_weights, self.folder / "damaged.h5")

        self.generate("--nodes", 60, "--degree", 4, "--classes", 2)
        said = self.refused("graph.h5 is not the graph of ", espalier.read_predictions, logits)
        self.assertIn(": its digest is", said)
        self.graph.unlink()
        words = "which is not there; say where it is: graph="
        self.refused(words, espalier.read_predictions, logits)

    def test_rows_of_types(self):
        self.write_job('model.kind="rgcn"')
        self.train("--types", "a=40:3,b=20", "--relations", "b.to.a=90")
        target = self.infer_to("target.h5", "--predictions")
        every = self.infer_to("every.h5", "--types", "all", "--predictions")
        written = arrays_of(every)
        for kind, count in (("a", 40), ("b", 20)):
            rows = espalier.read_rows(every, type=kind)
            np.testing.assert_array_equal(rows.values, written[f"types/{kind}/logits"])
            self.assertEqual(
                (rows.type, len(rows.values), rows.predictions is None), (kind, count, kind == "b")
            )
        np.testing.assert_array_equal(
            espalier.read_rows(target).values, espalier.read_rows(every, type="a").values
        )
        self.assertEqual(espalier.read_rows(target, type="a").type, "a")
        for path, kind, words in (
            (target, "b", "has no rows of the type 'b'"),
            (every, None, "has rows of a, b; say which type"),
        ):
            self.refused(words, espalier.read_rows, path, type=kind)
        report = espalier.read_report(self.output)
        self.assertEqual(
            espalier.read_predictions(target).accuracy("test"), report["test"]["accuracy"]
        )

    @needs("pandas")
    def test_as_pandas(self):
        self.train("--nodes", 60, "--degree", 4, "--features", 3, "--classes", 2)
        rows = self.infer_to("logits.h5", "--predictions")
        frame, found = espalier.read_predictions(rows, pandas=True), espalier.read_predictions(rows)
        self.assertEqual(
            list(frame.columns), ["vertex", "class", "name", "probability", "label", "split"]
        )
        of = frame[frame.split == "test"]
        self.assertEqual((of["class"] == of.label).mean(), found.accuracy("test"))
        self.refused("no vertex of these is in the split 'tset'", found.accuracy, "tset")


class WrongFiles(DataTest, FolderTest):
    def test_each_in_its_words(self):
        text, other = self.folder / "text.h5", self.folder / "other.h5"
        text.write_text("{}")
        h5py.File(other, "w").close()
        for read in (espalier.read_rows, espalier.read_predictions, espalier.read_weights):
            for path, words in (
                (text, "is no file of HDF5, or damaged"),
                (other, "is another file of HDF5, not espalier-"),
                (self.folder / "none.h5", "is not there; `espalier "),
            ):
                with self.subTest(read=read.__name__, path=path.name):
                    self.refused(words, read, path)
        for content, words in (
            ("{", "is no report: "),
            ("[]", "is no report of espalier"),
            (None, "is not there; a run writes it at its end"),
        ):
            path = self.folder / "report.json"
            path.unlink(missing_ok=True)
            if content is not None:
                path.write_text(content)
            self.refused(words, espalier.read_report, self.folder)


def report(rate, ranks, scores, losses=(2.0, 1.0)):
    epochs = [
        {
            "epoch": at + 1,
            "loss": loss,
            "seconds": {"total": 1.5, "sample": 0.5, "forward": 1.0, "evaluate": 0.25 * at},
            "bytes": {"sample": {"total": 10**6}, "fetch": {"total": 2 * 10**6}},
        }
        for at, loss in enumerate(losses)
    ]
    epochs[-1] |= {"valid": {"accuracy": scores[1], "macro_f1": 0.1}}
    return {
        "espalier": "0",
        "config": {"train": {"learning_rate": rate, "epochs": 2}, "output": {"dir": f"r{rate}"}},
        "ranks": ranks,
        "device": "cpu",
        "graph": {"digest": "ab"},
        "epochs": epochs,
        "best_epoch": 2,
        "train": {"accuracy": scores[0]},
        "test": {"accuracy": scores[2], "macro_f1": 0.2},
        "peak_memory_bytes": {"max": 5 * 10**6, "sum": 10**7},
    }


class SideBySide(DataTest, FolderTest):
    def put(self, name, content):
        (self.folder / name).mkdir()
        (self.folder / name / "report.json").write_text(json.dumps(content))
        return self.folder / name

    def test_what_differs_and_what_came_of_it(self):
        runs = [
            self.put("one", report(0.1, 1, (0.5, 0.6, 0.7))),
            self.put("two", report(0.2, 4, (0.8, 0.9, 1.0))),
        ]
        found = espalier.compare(runs)
        self.assertEqual(
            found.rows[1],
            {
                "run": str(runs[1]),
                "train.learning_rate": 0.2,
                "ranks": 4,
                "epochs": 2,
                "best epoch": 2,
                "train accuracy": 0.8,
                "valid accuracy": 0.9,
                "valid macro_f1": 0.1,
                "test accuracy": 1.0,
                "test macro_f1": 0.2,
                "seconds": 3.0,
                "seconds an epoch": 1.5,
                "MB between ranks": 6.0,
                "peak MB of a rank": 5.0,
            },
        )
        lines = str(found).splitlines()
        self.assertEqual(lines[0].split("  ")[0].strip(), "run")
        self.assertNotIn("macro_f1", lines[0])
        self.assertEqual(lines[1].split()[1:4], ["0.1000", "1", "2"])
        self.assertEqual(len({len(line) for line in lines}), 1)

    def test_of_one_run_nothing_differs(self):
        only = self.put("one", report(0.1, 1, (0.5, 0.6, 0.7)))
        for said in (only, [only], str(only)):
            self.assertEqual(list(espalier.compare(said).rows[0])[:2], ["run", "epochs"])

    @needs("matplotlib")
    def test_a_figure(self):
        run = self.put("one", report(0.1, 1, (0.5, 0.6, 0.7)))
        figure = espalier.plot(run, self.folder / "run.png")
        self.assertEqual((self.folder / "run.png").read_bytes()[:4], b"\x89PNG")
        learnt, spent, scores = figure.axes
        self.assertEqual(list(learnt.get_lines()[0].get_ydata()), [2.0, 1.0])
        self.assertEqual(list(scores.get_lines()[0].get_xdata()), [2])
        self.assertEqual(
            [text.get_text() for text in spent.get_legend().get_texts()],
            ["sample", "forward", "evaluate"],
        )
        self.assertEqual(max(bar.get_y() + bar.get_height() for bar in spent.patches), 1.75)
        none = self.put("none", {"espalier": "0", "epochs": []})
        self.refused("has no epochs of a training", espalier.plot, none)

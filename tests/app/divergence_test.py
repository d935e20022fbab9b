"""Numbers that are not finite: in what `infer` is given, and in what it computes.

Law, for rows, predictions and scores of links: nothing that is not finite leaves the program.
"""

import shutil
import zlib

import h5py
import numpy as np

from tests.app.program import ProgramTest

TASKS = {"classes": (), "labels": ('train.task="labels"',), "links": ('train.task="links"', "train.ranked_against=20")}


def seal(path):
    """A weights.h5 that h5py has changed becomes whole again (train/weights_file.hpp)."""
    content = bytearray(path.read_bytes())
    head = f"espalier-weights 1\nbytes {len(content)}\ncrc32 {zlib.crc32(bytes(content[512:])):08x}\n".encode()
    content[:512] = head.ljust(512, b"\0")
    path.write_bytes(content)


class DivergenceTest(ProgramTest):
    JOB = ("sampler.fanout=[3, 2]", "sampler.batch_size=16", "model.hidden=8", "model.layers=2", "train.epochs=3", "train.reproducible=true",
           "train.batches_per_step=2", "run.threads=1", 'run.device="cpu"', "run.checkpoint_minutes=0")

    def make(self, task):
        options = {"classes": (), "labels": ("--labels", 3), "links": ()}[task]
        generate = ("generate", "planted", "--nodes", 200, "--degree", 5, "--features", 6, "--classes", 3, "--seed", 2, *options)
        prepare = (("prepare", None, "--split-links", "0.8,0.1,0.1"),) if task == "links" else ()
        self.make_once(self.graph, generate, *prepare)
        self.write_job(*TASKS[task])


class Inferring(DivergenceTest):
    def changed(self, change):
        """The weights of a run with others in their place."""
        weights = self.folder / "weights.h5"
        shutil.copy(self.output / "weights.h5", weights)
        with h5py.File(weights, "r+") as file:
            change(file["weights"])
        seal(weights)
        return weights

    def refused(self, code, words, *options, **run):
        before = sorted(self.folder.rglob("*"))
        self.fail_with(code, words, "infer", self.config, "--checkpoint", self.folder / "weights.h5", "-o", self.folder / "rows.h5", *options, **run)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_weights_and_rows(self):
        self.make("classes")
        self.succeed("-q", "train", self.config)
        last = [f"layer2.{name}" for name in ("self", "neighbour", "bias")]

        def spoil(weights):
            weights["layer1.self"][2, 3] = np.nan
        self.changed(spoil)
        self.refused(3, ["weights.h5", "weights/layer1.self has nan in row 2, column 3"], ranks=2)

        def overflow(weights):
            weights["layer2.self"][...] *= np.float32(1e38)
        self.changed(overflow)
        words = ["layer 2 gives vertex ", "weights.h5", "not finite"]
        self.refused(6, words, ranks=3)
        self.refused(6, words, "--layer", 1, "--csv", self.folder / "x.csv", "--metrics", "--predictions")
        # Hidden rows are as they should be.
        self.infer_to("rows.h5", "--layer", 1, weights=self.folder / "weights.h5")

        # The largest logit is just what float16 holds, and twice as much.
        largest = np.abs(self.inferred()[0]["logits"]).max()
        for factor, fits in ((65000, True), (130000, False)):
            def enlarge(weights, by=np.float32(factor / largest)):
                for name in last:
                    weights[name][...] *= by
            weights = self.changed(enlarge)
            rows = self.inferred(weights=weights)[0]["logits"]
            if fits:
                np.testing.assert_array_equal(self.inferred("--half", weights=weights)[0]["logits"], rows.astype(np.float16))
            (self.folder / "rows.h5").unlink()
        self.refused(2, ["row ", "of /logits: column ", "too large for float16", "65504", "--half"], "--half", ranks=2)

    def test_scores_of_links_that_overflow(self):
        self.make("links")
        self.succeed("-q", "train", self.config)

        def enlarge(weights):
            for name in ("self", "neighbour", "bias"):
                weights[f"layer2.{name}"][...] *= np.float32(1e25)
        self.changed(enlarge)
        (self.folder / "asked.txt").write_text("".join(f"{k},{k + 1}\n" for k in range(50)))
        (self.folder / "heads.txt").write_text("".join(f"{k}\n" for k in range(5)))
        words = ["a link of relation 0 scores ", "weights.h5"]
        self.refused(6, words, "--links", self.folder / "asked.txt", ranks=2)
        self.refused(6, words, "--links", self.folder / "heads.txt", "--top", 3)
        self.refused(6, words, "--metrics", ranks=2)

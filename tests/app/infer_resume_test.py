"""`infer --resume FOLDER`: layers that are done are kept there, and the same command goes on after them.

Laws: whenever it was killed, and on however many ranks it goes on, the file is the one that an undisturbed run writes; the folder is gone
then; layers of something else, or damaged ones, are never taken.
"""

import os
import signal
import subprocess
import time

from tests.app.program import PROGRAM, ProgramTest, arrays_of, attributes_of, needs_emulation, on_gpus, set_at
from tests.launcher import LAUNCHER


class Resume(ProgramTest):
    JOB = ("sampler.fanout=[3, 3, 3]", "sampler.batch_size=500", "model.hidden=32", "model.layers=3", "train.epochs=1", "train.batches_per_step=4",
           "run.threads=1", 'model.normalize="batch"', 'graph.feature_norm="standard"')

    GENERATE = ("planted", "--nodes", 30000, "--degree", 20, "--classes", 5, "--features", 16, "--seed", 3)

    def setUp(self):
        super().setUp()
        self.succeed("-q", "train", self.config)
        self.kept = self.folder / "kept"
        self.rows = self.folder / "rows.h5"
        self.words = self.infer_words("--predictions", "--overwrite")

    def infer(self, *more, **options):
        return self.succeed(*self.words, *more, **options)

    def found(self):
        return {name: array.tobytes() for name, array in arrays_of(self.rows).items()}, attributes_of(self.rows)

    def killed(self, layers, *more, ranks):
        """Is killed when so many layers are there; False where it had ended before that was seen."""
        process = subprocess.Popen(LAUNCHER.command(ranks, PROGRAM, *self.words, "--resume", self.kept, *more), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
        last = self.kept / f"layer-{layers}.h5"
        while not last.exists() and process.poll() is None:
            time.sleep(0.001)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        return last.exists()

    def interrupted(self, layers, *more, ranks=1):
        for _ in range(10):
            if self.killed(layers, *more, ranks=ranks):
                return
        self.fail("it always ended before it could be killed")

    def test_the_file_of_an_undisturbed_run(self):
        self.infer()
        expected = self.found()
        for layers, ranks, more in ((1, 3, ()), (2, 2, (f"run.spill={self.folder}",))):
            self.rows.unlink(missing_ok=True)
            self.interrupted(layers)
            self.assertFalse(self.rows.exists())
            output = self.infer("--resume", self.kept, *more, ranks=ranks)
            self.assertIn(f"layers  {layers} of 3 were computed before", output)
            self.assertEqual(self.found(), expected)
            self.assertFalse(self.kept.exists())
        self.assertNotIn("computed before", self.infer("--resume", self.kept, ranks=2))
        self.assertEqual(self.found(), expected)

    def test_rows_that_are_drawn(self):
        self.infer("--sampled")
        expected = self.found()
        for kept, asked in ((("--sampled",), ()), ((), ("--sampled",)), (("--sampled",), ("--sampled", "train.seed=1"))):
            self.interrupted(1, *kept)
            self.fail_with(2, ["--resume", "layer-1.h5", "another network, graph or config"], *self.words, *asked, "--resume", self.kept)
            if asked:
                for layer in self.kept.iterdir():
                    layer.unlink()
                continue
            self.infer("--sampled", "--resume", self.kept, ranks=3)
            self.assertEqual(self.found(), expected)

    def test_what_is_of_something_else(self):
        self.interrupted(1)
        last = self.kept / "layer-1.h5"
        before = last.read_bytes()
        other = self.folder / "other.h5"
        self.make_once(other, ("generate", *self.GENERATE[:-1], 4))
        self.fail_with(2, ["--resume", "layer-1.h5", "another network, graph or config"], *self.words, f"graph.file={other}", "--resume", self.kept)
        self.assertEqual(last.read_bytes(), before)
        set_at(last, "embeddings", (29999, 3), lambda value: value + 1)
        for ranks in (1, 3):
            self.fail_with(3, ["layer-1.h5", "does not hold what it held"], *self.words, "--resume", self.kept, ranks=ranks)
        for damaged in (b"no file", before[:len(before) // 2]):
            last.write_bytes(damaged)
            self.fail_with(2, ["layer-1.h5 is damaged", "remove it"], *self.words, "--resume", self.kept)

    def test_what_is_refused(self):
        self.fail_with(2, ["--resume", "cannot make the folder"], *self.words, "--resume", self.graph / "below")
        self.succeed("-q", "train", self.config, "model.jumping=max", f"output.dir={self.folder / 'jumping'}")
        self.fail_with(2, ["--resume", "model.jumping = max"],
                       *self.infer_words("model.jumping=max", "--resume", self.kept, weights=self.folder / "jumping/weights.h5"))

    @needs_emulation
    def test_gpus(self):
        self.fail_with(2, ["--resume", "is for CPUs"], *self.words, "run.device=cuda", "--resume", self.kept, **on_gpus(1))

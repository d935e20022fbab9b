"""The proof kit where there is no GPU: benches verify themselves in the emulation, gpu_check.py reports what it ran and what it could not."""

import io
import json
import subprocess
import sys
import types
import unittest
from contextlib import redirect_stdout

import gpu_check
from gpu import profile, right
from gpu.places import describe_gpu
from gpu.record import as_text
from tests.app.program import LONG, ROOT, FolderTest, espalier, on_gpus, run_python

SCRIPT = ROOT / "scripts" / "gpu_check.py"


@unittest.skipUnless(LONG, "long: the benches, emulated")
class EmulatedBenches(FolderTest):
    def test_every_bench_finds_the_results_of_the_cpu(self):
        benches = sorted((ROOT / "bench").glob("*/*_bench.cu"))
        self.assertTrue(benches)
        for source in benches:
            name = source.relative_to(ROOT / "bench").with_suffix("")
            with self.subTest(bench=str(name)):
                out = self.folder / f"{name.name}.json"
                done = subprocess.run([ROOT / "build/emulated/bench" / name, "--quick", "--out", out],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
                self.assertEqual(done.returncode, 0, done.stdout)
                cases = json.loads(out.read_text())["cases"]
                self.assertTrue(cases)
                self.assertEqual([case["name"] for case in cases if case["wrong"]], [], done.stdout)
                self.assertTrue(all(case["rate"] > 0 and case["bound"] > 0 and case["bytes"] > 0 for case in cases))


@unittest.skipUnless(LONG, "long: epochs of several configurations, emulated")
class EmulatedEpochs(FolderTest):
    def test_they_are_those_of_single_trainings(self):
        graph, out, config = (self.folder / name for name in ("g.h5", "reports.json", "empty.toml"))
        config.write_text("")
        self.assertEqual(espalier("-q", "generate", "planted", "--nodes", 600, "--classes", 4, "--features", 20, "-o", graph)[0], 0)
        keys = [f"graph.file={graph}", "run.device=cuda", "run.threads=1", "train.epochs=2", "train.eval_every=0", "sampler.batch_size=64",
                "sampler.fanout=[5,4]", "model.layers=2", "model.hidden=16", "train.batches_per_step=1"]
        variants = {"plain": [], "bf16": ["train.precision=bf16"], "beside": ["run.overlap=true"], "impossible": ["train.precision=fp7"],
                    "host, 16 bits": ["graph.features_on=host", "graph.feature_bits=16"], "again": []}
        words = [word for name, more in variants.items() for word in ("--variant", name, *more)]
        done = subprocess.run([ROOT / "build/emulated/bench/train/epochs", "--out", out, *keys, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=200, **{"env": on_gpus(1)["env"]})
        self.assertEqual(done.returncode, 0, done.stdout)
        reports = json.loads(out.read_text())
        self.assertIn("fp7", reports.pop("impossible")["error"])
        for name, report in reports.items():
            folder = self.folder / "out"
            code, said = espalier("-q", "train", config, f"output.dir={folder}", *keys, *variants[name], **on_gpus(1))
            self.assertEqual(code, 0, said)
            alone = json.loads((folder / "report.json").read_text())
            for each in ("loss", "sample_digest"):
                self.assertEqual([epoch[each] for epoch in report["epochs"]], [epoch[each] for epoch in alone["epochs"]], name)
            self.assertEqual((report["weights_digest"], report["device"]), (alone["weights_digest"], alone["device"]), name)


class GpuCheck(FolderTest):
    def setUp(self):
        super().setUp()
        place = types.SimpleNamespace(commands=[], mpirun=["mpirun"], commit=lambda: "abc",
                                      results=self.folder / "results.json")
        options = types.SimpleNamespace(json=None, record=False, quick=True, parts=list(gpu_check.CHECKS), at_once=2, scale=None, minutes=None)
        self.check = gpu_check.Check(options, place, self.folder)

    def part(self, work):
        with redirect_stdout(io.StringIO()) as output:
            self.check.part("a part", work)
        return self.check.lines[-1], output.getvalue()

    def program(self, text):
        return self.script("program", f"#!{sys.executable}\nimport sys\n{text}")

    def results(self):
        with redirect_stdout(io.StringIO()) as output:
            code = gpu_check.report_results(self.check)
        return code, output.getvalue(), json.loads((self.folder / "results.json").read_text())

    def test_without_a_gpu_every_part_is_skipped(self):
        if describe_gpu()[0] is not None:
            self.skipTest("there is a GPU")
        out = self.folder / "out.json"
        done = run_python(SCRIPT, "--json", out)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("no GPU", done.stdout)
        result = json.loads(out.read_text())
        self.assertEqual((result["passed"], result["failed"], result["skipped"]), (0, 0, len(gpu_check.CHECKS)))
        self.assertIsNone(result["gpu"])

    def test_a_program_that_fails_or_is_missing_fails_its_part_and_the_run(self):
        line, output = self.part(lambda: self.check.run(self.program("print('why'); sys.exit(3)")))
        self.assertEqual(line["state"], "failed")
        self.assertIn("exit code 3", line["reason"])
        self.assertIn("why", output)
        self.assertEqual(self.part(lambda: self.check.run(self.folder / "nothing"))[0]["state"], "failed")
        self.part(lambda: {"tests": 3})
        code, output, result = self.results()
        self.assertEqual((code, result["passed"], result["failed"]), (1, 1, 2))
        self.assertIn("1 passed, 2 failed, 0 skipped", output)

    def test_a_test_program_passes_fails_or_is_skipped_by_its_report(self):
        report = ("path = next(a.split(':', 1)[1] for a in sys.argv if a.startswith('--gtest_output'))\n"
                  "open(path, 'w').write('{{\"testsuites\": [{{\"testsuite\": [{}]}}]}}')\n")
        passes = '{"classname": "S", "name": "A", "result": "COMPLETED"}'
        fails = '{"classname": "S", "name": "B", "result": "COMPLETED", "failures": [1]}'
        skips = '{"classname": "S", "name": "C", "result": "SKIPPED"}'
        states = []
        for tests in (passes, f"{passes}, {fails}", skips, f"{passes}, {skips}"):
            program = self.program(report.format(tests))
            states.append(self.part(lambda: right.run_test(self.check, program, 1))[0]["state"])
        self.assertEqual(states, ["passed", "failed", "skipped", "passed"])
        crash = self.program("sys.exit(139)")
        self.assertEqual(self.part(lambda: right.run_test(self.check, crash, 1))[0]["state"], "failed")

    def test_a_digest_or_a_loss_that_differs_is_a_failure(self):
        def compare(cpu, gpu):
            reports = iter([cpu, gpu])
            self.check.place.program = self.check.place.cpu_program = "program"
            right.train = lambda *_, **__: ({"epochs": [next(reports)]}, "")
            right.small_graph = lambda *_: "graph"
            return self.part(lambda: right.compare_devices(self.check, [], 1))[0]

        def epoch(loss, digest):
            return {"loss": loss, "sample_digest": digest, "valid": {"accuracy": 0.5}}

        self.assertEqual(compare(epoch(1.0, "a"), epoch(1.0001, "a"))["state"], "passed")
        self.assertIn("digest", compare(epoch(1.0, "a"), epoch(1.0, "b"))["reason"])
        self.assertIn("loss", compare(epoch(1.0, "a"), epoch(1.01, "a"))["reason"])
        self.assertEqual(compare(epoch(1.0, "a"), epoch(float("nan"), "a"))["state"], "failed")

    def test_a_job_that_begins_anew_on_the_other_device_is_a_failure(self):
        self.check.place.program = self.check.place.cpu_program = "program"
        right.small_graph = lambda *_: "graph"

        def change(went_on):
            def train(check, program, graph, *keys, **options):
                epochs = int(next(key for key in keys if key.startswith("train.epochs")).partition("=")[2])
                epoch = {"loss": 1.0, "sample_digest": "a"}
                restart = {"restart": {}} if went_on and "folder" in options and epochs > 1 else {}
                return {"epochs": [epoch] * epochs, **restart}, ""

            right.train = train
            return self.part(lambda: right.change_devices(self.check))[0]

        self.assertEqual(change(True)["state"], "passed")
        self.assertIn("no checkpoint", change(False)["reason"])

    def test_a_profile_adds_up_the_launches_of_a_kernel(self):
        page = ('==PROF== words\n"ID","Kernel Name","Grid Size","Block Size","dram__bytes_read.sum","dram__bytes_write.sum",'
                '"gpu__time_duration.sum"\n"","","","","byte","byte","ns"\n'
                '"0","one","(1, 1, 1)","(32, 1, 1)","1,000","500","2,000"\n"1","two","(1, 1, 1)","(32, 1, 1)","8000","0","4000"\n'
                '"2","one","(2, 1, 1)","(32, 1, 1)","1000","500","2000"\n')
        found = profile.kernel_times(page)
        self.assertEqual([(k["name"], k["launches"], round(k["share"], 9)) for k in found["kernels"]], [("one", 2, 0.5), ("two", 1, 0.5)])
        self.assertAlmostEqual(found["kernels"][0]["GB/s"], 0.75)
        self.assertAlmostEqual(found["microseconds"], 8)
        self.assertEqual(len(found["launches"]), 3)
        self.assertEqual(json.loads(as_text({"gpu": None}, [{"name": "p", "figures": found}]))["parts"][0]["figures"], found)

    def test_the_sanitizer_passes_by_its_summary_only(self):
        for words, state in (("ERROR SUMMARY: 0 errors", "passed"), ("ERROR SUMMARY: 10 errors", "failed"),
                             ("RACECHECK SUMMARY: 10 hazards displayed", "failed"),
                             ("RACECHECK SUMMARY: 0 hazards displayed (0 errors)", "passed"), ("", "failed"),
                             ("Device not supported", "skipped")):
            self.assertEqual(self.part(lambda: right.verdict(words))[0]["state"], state, words)

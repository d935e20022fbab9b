"""The proof kit in few minutes: what is left out, what a cut leaves, one program against another; by reports and programs made up."""

import contextlib
import copy
import io
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import types

import gpu_check
from gpu import against, epoch, machine
from gpu.check import Check, Failure, Skip, TimeIsUp
from gpu.places import Bundle, open_bundle
from tests.app.program import ROOT, FolderTest, run_python

SCRIPT = ROOT / "scripts" / "gpu_check.py"


def quietly(work):
    with contextlib.redirect_stdout(io.StringIO()):
        return work()


class MinutesTest(FolderTest):
    def make(self, gpu={"name": "G"}, before=None, commit="abc", **changed):
        place = types.SimpleNamespace(commands=[], mpirun=["mpirun"], commit=lambda: commit, results=self.folder / "results.json")
        options = {"json": None, "record": False, "quick": True, "parts": list(gpu_check.CHECKS), "at_once": 2, "scale": None,
                   "minutes": None, "benches": None, "digests_differ": False}
        return Check(types.SimpleNamespace(**{**options, **changed}), place, self.folder, gpu, before)

    def states(self, check):
        return {line["name"]: line["state"] for line in check.lines}


class Budget(MinutesTest):
    def test_a_part_that_does_not_fit_is_left_out_and_named_and_a_shorter_one_is_run(self):
        check, ran = self.make(minutes=1), []
        quietly(lambda: [check.part(name, lambda: ran.append(name), seconds) for name, seconds in (("long", 61), ("short", 5))])
        self.assertEqual((self.states(check), ran), ({"long": "left out", "short": "passed"}, ["short"]))
        self.assertIn("takes 61 s", check.lines[0]["reason"])
        self.assertEqual(json.loads((self.folder / "results.json").read_text())["left out"], 1)

    def test_of_parts_that_run_as_one_the_last_are_left_out(self):
        check, asked = self.make(minutes=1), []
        quietly(lambda: check.parts_of_one({"a": 25, "b": 25, "c": 25},
                                           lambda names: asked.extend(names) or {"a": {"x": 1}, "b": Failure("why")}))
        self.assertEqual(asked, ["a", "b"])
        self.assertEqual(self.states(check), {"c": "left out", "a": "passed", "b": "failed"})

    def test_a_program_ends_when_the_minutes_do(self):
        check = self.make(minutes=0.02)
        quietly(lambda: check.part("p", lambda: check.run(sys.executable, "-c", "import time; time.sleep(60)")))
        quietly(lambda: check.parts_of_one({"q": 0}, lambda names: check.run(sys.executable, "-c", "")))  # nothing is left
        self.assertEqual(self.states(check), {"p": "left out", "q": "left out"})
        self.assertEqual(check.lines[0]["reason"], "the minutes ended before it did")
        self.assertLess(check.lines[0]["seconds"], 10)


class Resume(MinutesTest):
    def test_what_passed_stays_and_what_failed_or_was_left_out_runs_again(self):
        def skip():
            raise Skip("none")

        def fail():
            raise Failure("a reason\nin full")

        first, again, ran = self.make(minutes=1), self.make(), []
        works = {"good": lambda: {"x": 1}, "skipped": skip, "bad": fail}
        quietly(lambda: [first.part(name, work) for name, work in works.items()] + [first.part("long", dict, seconds=600)])
        again.resume()
        quietly(lambda: [again.part(name, lambda: ran.append(name)) for name in (*works, "long")])
        self.assertEqual(ran, ["bad", "long"])
        self.assertEqual(self.states(again), {"good": "passed", "skipped": "skipped", "bad": "passed", "long": "passed"})
        self.assertEqual([line["figures"] for line in again.lines if line["name"] in ("good", "bad")],
                         [{"x": 1}, {"failed before": "a reason"}])

    def test_a_record_of_another_program_gpu_or_size_is_refused(self):
        quietly(lambda: self.make().part("p", dict))
        for other in ({"commit": "def"}, {"gpu": {"name": "H"}}, {"quick": False}, {"before": types.SimpleNamespace(commit=lambda: "old")}):
            with self.assertRaisesRegex(ValueError, "nothing to go on from", msg=other):
                self.make(**other).resume()
        self.make(gpu={"name": "G", "driver": "another"}).resume()  # of the same GPU

    def test_nothing_to_go_on_from_begins_anew(self):
        check = self.make()
        check.resume()
        self.assertEqual(check.lines, [])


def report(seconds, digests=("a", "b", "c"), losses=(3.0, 2.0, 1.0)):
    return {"epochs": [{"epoch": k + 1, "sample_digest": digest, "loss": loss, "seconds": {"total": second, "fetch": 0.0}}
                       for k, (digest, loss, second) in enumerate(zip(digests, losses, seconds))]}


class Against(MinutesTest):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        self.seconds = {program: [[rng.uniform(1, 2) for _ in range(3)] for _ in range(2)] for program in against.PROGRAMS}
        self.reports = {program: [report(turn) for turn in turns] for program, turns in self.seconds.items()}

    def test_medians_are_of_all_turns_without_their_first_epochs(self):
        figures = against.compare(self.reports)
        values = {program: [second for turn in turns for second in turn[1:]] for program, turns in self.seconds.items()}
        (row,) = figures["compared"]  # no row of a stage that takes no time
        self.assertEqual((row["before"], row["now"]), tuple(statistics.median(values[program]) for program in ("before", "now")))
        self.assertEqual(row["ratio"], row["now"] / row["before"])
        pairs = [now / before for now in values["now"] for before in values["before"]]
        self.assertEqual((row["low"], row["high"]), (min(pairs), max(pairs)))
        self.assertEqual((figures["digests"], figures["loss off by"]), ("equal", 0))

    def test_a_program_that_does_not_repeat_itself_is_a_failure(self):
        for key, value in (("loss", 2.0000001), ("sample_digest", "x")):
            for program in against.PROGRAMS:
                reports = copy.deepcopy(self.reports)
                reports[program][1]["epochs"][1][key] = value
                with self.assertRaisesRegex(Failure, f"program {program} does not repeat itself"):
                    against.compare(reports, digests_differ=True)

    def test_samples_that_differ_are_a_failure_unless_they_are_meant_to(self):
        self.reports["now"] = [report(turn, digests=("a", "x", "c"), losses=(3.0, 1.5, 1.0)) for turn in self.seconds["now"]]
        with self.assertRaisesRegex(Failure, "epoch 2: sample digest x, b before.*--digests-differ"):
            against.compare(self.reports)
        figures = against.compare(self.reports, digests_differ=True)
        self.assertEqual(figures["digests"], "differ, as was said")
        self.assertNotIn("loss off by", figures)

    def test_losses_that_part_are_a_failure(self):
        self.reports["now"] = [report(turn, losses=(3.0, 2.01, 1.0)) for turn in self.seconds["now"]]
        with self.assertRaisesRegex(Failure, "losses are 5.00e-03 apart"):
            against.compare(self.reports)

    def test_programs_run_in_turn_and_one_that_fails_fails_its_own_line(self):
        order, once, fails = [], set(), "tf32"
        reads_once, reads_each = self.script("epochs", ""), self.folder / "none"

        def run_variants(check, graph, variants, epochs, place=None, reads_once=True):
            order.append(place.name)
            once.add(reads_once)
            return {name: Failure("why") if name == fails and place.name == "now" else report([1.0] * 3) for name in variants}

        check = self.make(before=types.SimpleNamespace(commit=lambda: "old", name="before", benches=lambda: [], epochs=reads_each))
        check.place.name, check.place.benches, check.place.epochs = "now", lambda: [], reads_once
        self.addCleanup(setattr, against, "run_variants", against.run_variants)
        self.addCleanup(setattr, against, "products_graph", against.products_graph)
        against.run_variants, against.products_graph = run_variants, lambda check: "graph"
        quietly(lambda: against.check_against(check))
        self.assertEqual(order, ["before", "now"] * 4)  # two turns of those on the GPU and of those on the host
        self.assertEqual([name for name, state in self.states(check).items() if state != "passed"], ["against, epoch tf32"])
        self.assertEqual(once, {False})  # the one before cannot, so neither does

    def test_benches_are_compared_by_the_cases_of_both(self):
        cases = {"before": [{"name": "a", "unit": "GB/s", "rate": 2.0}, {"name": "gone", "unit": "GB/s", "rate": 1.0}],
                 "now": [{"name": "a", "unit": "GB/s", "rate": 3.0}]}
        check = self.make(before=types.SimpleNamespace(name="before"))
        check.place.name = "now"
        self.addCleanup(setattr, against, "run_bench", against.run_bench)
        against.run_bench = lambda check, program, place=None: {"cases": cases[place.name]}
        figures = against.compare_benches(check, {"before": "p", "now": "q"})
        self.assertEqual([(row["name"], row["ratio"]) for row in figures["compared"]], [("a", 1.5)])
        self.assertEqual(figures["in one alone"], "gone")


class Machine(MinutesTest):
    PAGE = """<nvidia_smi_log><driver_version>580.1</driver_version><cuda_version>13.0</cuda_version><gpu id="0">
        <performance_state>P0</performance_state><clocks><sm_clock>1980 MHz</sm_clock></clocks>
        <mig_mode><current_mig>N/A</current_mig></mig_mode><gpu_power_readings><power_draw>93.1 W</power_draw></gpu_power_readings>
        <clocks_event_reasons><clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
        <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap></clocks_event_reasons></gpu></nvidia_smi_log>"""

    def test_the_state_is_what_the_driver_says_and_no_more(self):
        self.assertEqual(machine.state_of_gpu(self.PAGE),
                         {"driver": "580.1", "CUDA of the driver": "13.0", "performance state": "P0", "SM clock": "1980 MHz",
                          "power": "93.1 W", "clocks are held by": "sw_power_cap"})

    def test_readings_under_load_are_their_median_and_range(self):
        found = machine.spread_of_readings("1980, 2619, 500.5, 60\n1500, 2619, 700.1, 61\n1600, 2619, [N/A], 62\nbroken\n")
        self.assertEqual(found["SM MHz"], {"median": 1600, "low": 1500, "high": 1980})
        self.assertEqual(found["W"], {"median": 600.3, "low": 500.5, "high": 700.1})


class Bus(MinutesTest):
    """machine.py as a program, over a driver and a cuBLAS made up: copies are memcpy, and the driver refuses what has no context."""

    DRIVER = """#include <stdlib.h>
#include <string.h>
static void *current, *pinned, *device;
static size_t pinned_bytes;
int cuInit(unsigned flags) { return flags; }
int cuDevicePrimaryCtxRetain(void** context, int gpu) { *context = &current; return gpu; }
int cuCtxSetCurrent(void* context) { current = context; return context != &current; }
int cuMemHostAlloc(void** to, size_t bytes, unsigned flags) { pinned_bytes = bytes; return !current || flags || !(*to = pinned = malloc(bytes)); }
int cuMemAlloc_v2(void** to, size_t bytes) { return bytes != pinned_bytes || !(*to = device = malloc(bytes)); }
static int copy(void* to, void* from, size_t bytes, int right) { return !right || bytes != pinned_bytes || !memcpy(to, from, bytes); }
int cuMemcpyHtoDAsync_v2(void* to, void* from, size_t bytes, void* s) { return copy(to, from, bytes, to == device && from == pinned && !s); }
int cuMemcpyDtoHAsync_v2(void* to, void* from, size_t bytes, void* s) { return copy(to, from, bytes, to == pinned && from == device && !s); }
int cuCtxSynchronize(void) { return 0; }
int cublasGetProperty(int which, int* value) { *value = 13 - 6 * which; return 0; }
"""

    def test_rates_and_version_are_measured_by_the_drivers_calls(self):
        (self.folder / "driver.c").write_text(self.DRIVER)
        for name in ("libcuda.so.1", "libcublas.so.13"):
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.folder / name, self.folder / "driver.c"], check=True)
        done = run_python("-c", "import gpu.machine as machine, json; machine.BYTES = 1 << 16; "
                          "print(json.dumps([machine.pinned_rates(), machine.cublas_version()]))",
                          env=dict(os.environ, LD_LIBRARY_PATH=str(self.folder), PYTHONPATH=str(ROOT / "scripts")))
        self.assertEqual(done.returncode, 0, done.stderr)
        rates, version = json.loads(done.stdout)
        self.assertEqual((sorted(rates), version), (["device to host GB/s", "host to device GB/s"], "13.7.1"))
        self.assertTrue(all(0 < rate < 1e6 for rate in rates.values()), rates)


class Arguments(MinutesTest):
    def test_what_makes_no_sense_is_one_error(self):
        (self.folder / "empty").mkdir()
        for words, said in ((["--minutes", "0"], "more than 0"), (["--digests-differ"], "are of --against"),
                            (["--against", self.folder / "nothing"], "no such file"), (["--against", self.folder / "empty"], "no bundle"),
                            (["--parts", "nonsense"], "no part nonsense")):
            done = run_python(SCRIPT, "--json", self.folder / "out.json", *words)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(said, done.stdout + (done.stderr or ""))

    def test_a_bundle_is_its_folder_or_its_archive(self):
        import tarfile

        root = self.folder / "espalier-bundle"
        root.mkdir()
        (root / "manifest.json").write_text('{"tests": {}, "benches": [], "commit": "old"}')
        with tarfile.open(self.folder / "b.tar", "w") as archive:
            archive.add(root, "espalier-bundle")
        for path in (root, self.folder / "b.tar"):
            found = open_bundle(path, self.folder / "unpacked")
            self.assertIsInstance(found, Bundle)
            self.assertEqual(found.commit(), "old")


class OneProcess(MinutesTest):
    """Variants by a program made up, which writes its file anew after each and dies of one that is told to."""

    PROGRAM = f"""#!{sys.executable}
import json, sys
out, variants, reports = sys.argv[sys.argv.index("--out") + 1], {{}}, {{}}
for word in sys.argv[1:]:
    last = word if word.startswith("--") else last
    if last == "--variant":
        variants.setdefault(name := word, []) if word != last and "=" not in word else word != last and variants[name].append(word)
for name, keys in variants.items():
    if "dies=1" in keys:
        print("a crash")
        sys.exit(139)
    reports[name] = {{"error": "not that"}} if "refused=1" in keys else {{"keys": keys}}
    json.dump(reports, open(out, "w"))
"""

    def run_it(self, variants, **options):
        check = self.make()
        check.place.epochs, check.place.program = self.script("epochs", self.PROGRAM), "each"
        return epoch.run_variants(check, "graph", variants, 4, **options)

    def test_each_variant_has_its_report_and_what_came_before_a_crash_counts(self):
        found = self.run_it({"a": [], "bad": ["refused=1"], "b": ["x=1", "y=2"], "c": ["dies=1"], "d": []})
        self.assertEqual((found["a"], found["b"]), ({"keys": []}, {"keys": ["x=1", "y=2"]}))
        self.assertEqual([name for name, report in found.items() if isinstance(report, Failure)], ["bad", "c", "d"])
        self.assertIn("not that", str(found["bad"]))
        for name in ("c", "d"):
            self.assertIn("exit code 139", str(found[name]))
            self.assertIn("a crash", str(found[name]))

    def test_variants_that_the_minutes_end_are_left_out_and_those_before_are_not(self):
        def run(*command, place=None, **options):
            pathlib.Path(command[2]).write_text('{"a": {"keys": []}}')
            raise TimeIsUp("the minutes ended")

        check = self.make()
        check.place.epochs, check.run = self.script("epochs", ""), run
        found = epoch.run_variants(check, "graph", {"a": [], "b": []}, 4)
        self.assertEqual((found["a"], type(found["b"])), ({"keys": []}, TimeIsUp))

    def test_a_place_without_the_program_reads_the_graph_for_each(self):
        self.addCleanup(setattr, epoch, "report_or_failure", epoch.report_or_failure)
        epoch.report_or_failure = lambda check, graph, keys, place: keys[-1]
        self.assertEqual(self.run_it({"a": ["x=1"], "b": ["x=2"]}, reads_once=False), {"a": "x=1", "b": "x=2"})


class Repeats(MinutesTest):
    def test_the_same_epochs_must_be_the_same_to_the_last_bit(self):
        for second, state in ((report([1] * 3), "passed"), (report([1] * 3, losses=(3.0, 2.0, 1.0000001)), "failed")):
            check, turns = self.make(), iter([report([2] * 3), second])
            for name, fake in (("report_or_failure", lambda *_: next(turns)), ("products_graph", lambda check: "graph")):
                self.addCleanup(setattr, epoch, name, getattr(epoch, name))
                setattr(epoch, name, fake)
            quietly(lambda: epoch.check_repeats(check))
            self.assertEqual(self.states(check), {"the same epochs twice": state})

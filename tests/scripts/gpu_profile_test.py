"""The parts of gpu-check that no GPU is needed for: kernels by stage, from a page as ncu prints it; which jobs are checked for memory."""

import contextlib
import io
import re
import types

from gpu import profile, right
from gpu.check import Check, Failure
from gpu.record import show
from tests.app.program import ROOT, FolderTest

COLUMNS = ("ID", "Process ID", "Process Name", "Host Name", "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
           "Kernel Name", "Grid Size", "Block Size", *profile.METRICS)
STEP = (("fetch", 100), ("forward", 200), ("forward", 300), ("backward", 250), ("backward", 400), ("optimizer", 30), ("optimizer", 20))


def ranges_of(*names):
    return "97 " + " ".join(f'"<default domain>:{name}:none:none:none:none:none:none"' for name in names) if names else ""


def page_of(launches):
    """Launches of (ranges, kernel, microseconds), each moving 1,000 bytes."""
    rows = [COLUMNS, ["", "", "", "", "", "", "", "", "ns", "byte", "byte"]]
    rows += [[str(k), "97", "espalier", "h", ranges, kernel, "(1, 1, 1)", "(32, 1, 1)", f"{1000 * microseconds:,}", "600", "400"]
             for k, (ranges, kernel, microseconds) in enumerate(launches)]
    return "==PROF== words\n" + "\n".join(",".join('"' + word.replace('"', '""') + '"' for word in row) for row in rows) + "\n"


class Stages(FolderTest):
    def launches(self, *steps, sampling=(("sample", 5000),), cut=0):
        all_of = [*sampling, *(launch for step in steps for launch in step)]
        page = page_of([(ranges_of(stage, "launcher"), "k", microseconds) for stage, microseconds in all_of[:len(all_of) - cut]])
        return profile.kernel_times(page)["launches"]

    def stages(self, launches, wall=None):
        return {row["name"]: row for row in profile.stages_of_a_step(launches, wall or {})}

    def test_a_launch_is_of_the_stage_that_it_is_within(self):
        launches = profile.kernel_times(page_of([(ranges_of("forward", "gemm"), "b", 5), (ranges_of("all_reduce"), "a", 2),
                                                 ("", "b", 1), (ranges_of("backward", "optimizer"), "a", 1)]))["launches"]
        self.assertEqual([launch[-1] for launch in launches], ["forward", None, None, "backward"])
        self.assertEqual([launch[0] for launch in launches], [0, 1, 0, 1])  # places among the kernels, the longest first

    def test_a_step_is_the_mean_of_whole_steps_behind_the_first(self):
        slow = [(stage, 3 * microseconds) for stage, microseconds in STEP]
        found = self.stages(self.launches(slow, STEP, slow, STEP, cut=3))
        self.assertEqual({stage: (row["launches"], row["kernels"]) for stage, row in found.items()},
                         {"fetch": (1, 200), "forward": (2, 1000), "backward": (2, 1300), "reduce": (0, 0), "optimizer": (2, 100)})

    def test_a_last_step_that_may_not_be_whole_does_not_count(self):
        whole = self.stages(self.launches(STEP, STEP, STEP))
        self.assertEqual(whole["optimizer"]["kernels"], 50)
        self.assertEqual(self.stages(self.launches(STEP, STEP)), {})  # the second may have ended within its optimizer
        self.assertEqual(self.stages(self.launches(STEP, STEP, cut=5)), {})

    def test_copies_and_gaps_are_what_the_stage_takes_beyond_its_kernels(self):
        seconds = {"fetch": 196 * 110e-6, "forward": 196 * 600e-6}
        found = self.stages(self.launches(STEP, STEP, STEP), seconds)
        self.assertAlmostEqual(found["fetch"]["copies and gaps"], 10)
        self.assertAlmostEqual(found["forward"]["copies and gaps"], 100)
        self.assertNotIn("wall", found["backward"])
        with contextlib.redirect_stdout(io.StringIO()) as output:
            show({"name": "p", "state": "passed", "seconds": 1, "figures": {"stages": list(found.values())}})
        self.assertRegex(output.getvalue(), r"fetch +1\.0 launches, +100\.0 us of kernels, of 110\.0: copies and gaps 10\.0")

    def test_sampling_alone_is_that_of_an_epoch_unless_the_profile_ended_before(self):
        launches = self.launches(sampling=[("sample", 700), ("sample", 300)])
        self.assertEqual(profile.whole_sampling(launches, {"sample": 0.0015}),
                         [{"name": "sample", "launches": 2, "kernels": 1000, "wall": 1500, "copies and gaps": 500}])
        self.assertNotIn("wall", profile.whole_sampling(launches * profile.PROFILED, {"sample": 1})[0])

    def test_a_profile_is_set_beside_the_epoch_of_its_precision(self):
        lines = [{"name": f"epoch like ogbn-products, {name}", "state": state, "figures": {"seconds": {"total": second}}}
                 for name, state, second in (("fp32", "passed", 1), ("tf32", "passed", 2), ("bf16", "failed", 3))]
        check = types.SimpleNamespace(lines=lines)
        self.assertEqual([profile.wall_of_stages(check, name) for name in ("fp32", "tf32", "bf16")], [{"total": 1}, {"total": 2}, {}])


class Memcheck(FolderTest):
    def test_every_network_and_sampler_of_the_program_is_checked(self):
        keys = (ROOT / "src/base/config_keys.cpp").read_text()
        networks = re.search(r'Key\{"model\.kind".*?among\(\{(.*?)\}\)', keys, re.S)[1]
        self.assertEqual(sorted(right.NETWORKS), sorted(re.findall(r"\w+", networks)))
        table = (ROOT / "src/sample/samplers.inl.hpp").read_text()
        samplers = re.search(r"#define ESPALIER_SAMPLERS\(sampler\)(.*?[^\\])\n", table, re.S)[1]
        self.assertEqual(sorted(right.SAMPLERS), sorted(re.findall(r"sampler\((\w+),", samplers)))

    def sanitize(self, writes):
        program = self.script("sanitizer", "#!/bin/bash\n" + ("for word in \"$@\"; do case $word in output.dir=*) mkdir -p ${word#*=} && "
                              "touch ${word#*=}/report.json ;; esac; done\n" if writes else "") + "echo ERROR SUMMARY: 0 errors; exit 2\n")
        place = types.SimpleNamespace(commands=[], mpirun=[], commit=lambda: "abc", results=self.folder / "results.json", program="p",
                                      cpu_program=self.script("made", '#!/bin/bash\ntouch "${@: -2:1}"\n'))
        options = types.SimpleNamespace(json=None, record=False, minutes=None, quick=True)
        return right.sanitize_job(Check(options, place, self.folder), str(program), "memcheck", ["model.kind=rgcn"])

    def test_a_job_that_was_refused_is_none_without_errors(self):
        self.assertEqual(self.sanitize(writes=True), {"errors": 0})
        with self.assertRaisesRegex(Failure, "did not come to its end"):
            self.sanitize(writes=False)

"""scripts/check_rooms.py: the order of rooms, jobs checked in one place, one table of keys.

Law: a second list of keys, and one of checks of a job, wherever jobs are run, is named with its line; the tree as it is has none.
"""

import re
import shutil

from tests.app.program import ROOT, FolderTest, run_python

ROOMS = "base comm file sparse dense graph partition product sample feature nn infer history train plan job library app".split()

PLANTED = {
    "app/train.cpp": ('check_splits(world, *job.file);', "a check of a job"),
    "app/plan.cpp": ('input_error("{}: /split/train is empty or absent",\n            path);', "refuses a job"),
    "app/infer.cpp": ('if (needed > has) memory_error("{} is too much", needed);', "a check of a job"),
    "plan/peak_memory.cpp": ('usage_error(\n      "does not fit: {}", words);', "refuses a job"),
    "feature/read_store.cpp": ('input_error("{}: has no /nodes/features", path);', "refuses a job"),
}


class RoomsTest(FolderTest):
    def problems(self, files, opening="// A file.\n"):
        """(exit code, what the script says) of a tree with a table of keys and these files of src/, {path: text}, whose lines count
        from behind the opening."""
        tree = self.folder / "tree"
        shutil.rmtree(tree, ignore_errors=True)
        (tree / "include/espalier/base").mkdir(parents=True)
        table = 'Key{"model.hidden", kShape}, Key{"model.layers", kShape}, Key{"run.threads", kCost}'
        for path, text in {"base/config_keys.cpp": table, **files}.items():
            (tree / "src" / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / "src" / path).write_text(opening + text)
        done = run_python(ROOT / "scripts/check_rooms.py", *ROOMS, cwd=tree)
        lines = opening.count("\n")
        return done.returncode, re.sub(r":(\d+):", lambda line: f":{int(line[1]) - lines}:", done.stdout + done.stderr)

    def caught(self, files, *words):
        code, said = self.problems(files)
        self.assertEqual(code, 1, files)
        for word in words:
            self.assertIn(word, said)

    def fine(self, files):
        self.assertEqual(self.problems(files), (0, "rooms ok\n"), files)


class Openings(RoomsTest):
    def test_a_file_that_nothing_tells_about(self):
        table = {"base/config_keys.cpp": "// Keys.\n"}
        for path, others in (("sample/labor.cpp", ()), ("sample/labor.hpp", ()), ("sample/labor.cu", ("sample/labors.hpp",))):
            files = {path: "int a;\n"} | {other: "// Another.\n" for other in others} | table
            code, said = self.problems(files, opening="")
            self.assertEqual((code, said), (1, f"src/{path}: opens with nothing, and no header of its name says what it is\n"))
        for header in ("sample/labor.hpp", "sample/labor.inl.hpp", "sample/labor_on_gpu.hpp"):
            self.assertEqual(self.problems({"sample/labor.cpp": "int a;\n", header: "// LABOR.\n"} | table, opening="")[1], "rooms ok\n")


class JobChecks(RoomsTest):
    def test_a_second_list_is_caught(self):
        for path, (line, words) in PLANTED.items():
            self.caught({path: f"// A file.\nvoid planted() {{\n  {line}\n}}\n"}, f"src/{path}:3", words)

    def test_the_seam_names_no_part(self):
        line, ask_all = "  if (job_.config.history.kind != \"none\") begin_history();", "; ask all parts (train/planned_hooks.hpp)"
        for words, paths in (
            ("", ("train/trainer.inl.hpp", "train/step_pipeline.hpp", "train/checkpoint.cpp", "train/report.cpp", "nn/network.inl.hpp")),
            (ask_all, ("plan/memory.cpp", "plan/peak_memory.cpp", "job/job.cpp", "app/plan.cpp")),
        ):
            for path in paths:
                self.caught({path: f"void planted() {{\n{line}\n}}\n"}, f"src/{path}:2: names history, a hook of a step{words}")
        for path, text in (("train/history_hook.inl.hpp", line), ("train/checkpoint.cpp", 'write("history", epochs);'),
                           ("train/trainer.cpp", "// what history is"), ("feature/network.cpp", line)):
            self.fine({path: text + "\n"})

    def test_the_table_of_parts_says_their_names(self):
        table = {"train/step_hooks.inl.hpp": "#define PARTS(part) \\\n  part(running_statistics, nullptr) \\\n  part(gradient_noise, nullptr)\n"}
        for path in ("train/trainer.inl.hpp", "nn/network.cpp", "plan/memory.cpp", "job/job.cpp"):
            for line in ("add(make_gradient_noise(job));", "gradient_noise.add(job);"):
                self.fine({path: line + "\n"})
                self.caught({path: line + "\n", **table}, "gradient_noise, a hook of a step")
            self.fine({path: "network.running_statistics();\n", **table})

    def test_two_types_of_one_name_are_caught(self):
        one = "namespace espalier {\nstruct Options {\n  int a;\n};\n}\n"
        code, said = self.problems({"graph/import.hpp": one, "graph/generate.hpp": one.replace("int a", "double b")})
        self.assertEqual((code, said), (1, "src/graph/import.hpp: src/graph/generate.hpp has a type Options too\n"))
        for other in (one.replace("espalier", "espalier::generate"), one.replace("Options {", "Options;\nstruct Others {"),
                      one.replace("Options {", "Options::State {")):
            self.fine({"graph/import.hpp": one, "graph/generate.hpp": other})

    def test_the_table_and_commands_that_run_no_job_may(self):
        for path in ("job/job_check.cpp", "app/import.cpp", "graph/graph_file.cpp"):
            self.fine({path: "void f() {\n  check_splits(world, file);\n}\n"})


class RoomsAndKeys(RoomsTest):
    def test_the_order_of_rooms(self):
        self.fine({"app/a.cpp": '#include "espalier/base/x.hpp"\n'})
        self.caught({"base/b.cpp": '#include "espalier/app/x.hpp"\n'}, "comes after it")
        self.fine({"library/a.cpp": '#include "espalier/job/x.hpp"\n'})
        self.caught({"job/b.cpp": '#include "espalier/library/x.hpp"\n'}, "comes after it")

    def test_the_header_of_c_functions(self):
        self.fine({"library/a.cpp": '#include "espalier.h"\n', "../include/espalier.h": "#include <stdint.h>\n"})
        for room in ("job", "app"):
            self.caught({f"{room}/a.cpp": '#include "espalier.h"\n'}, f"src/{room}/a.cpp:1: includes the header of C functions; only library/ may")
        self.caught({"../include/espalier.h": '#include "espalier/base/x.hpp"\n'}, "include/espalier.h: includes espalier/base/x.hpp")

    def test_headers_that_depend_on_cuda_say_so_by_their_name(self):
        for text in ("#ifdef ESPALIER_WITH_CUDA\n#endif\n", '#include "job_on_gpu.hpp"\n'):
            for path in ("library/a.cpp", "app/a.cpp", "app/a_on_gpu.hpp"):
                self.fine({path: text})
            self.caught({"app/a.hpp": text}, "hides a test of whether CUDA was built")

    def test_functions_of_the_c_library(self):
        for call in ("std::exp(x)", "expf(x)", "std::log(x)", "pow(x, y)", "std::erf(x)"):
            self.caught({"train/a.cpp": f"double y = {call};\n"}, "src/train/a.cpp:1: a function of the C library")
        for fine in ("exp_of_nonpositive(x)", "log::info(x)", "catalog(x)", "std::sqrt(x)", "// std::exp(x)"):
            self.fine({"train/a.cpp": f"auto y = {fine};\n"})
        self.fine({"train/a_work.cpp": "auto y = std::exp(x);\n"})

    def test_a_second_list_of_keys(self):
        two = 'f("model.hidden"); f("run.threads");'
        self.fine({"app/a.cpp": two + '// "model.layers"'})
        self.caught({"app/a.cpp": two + 'f("model.layers");'}, "a list of keys")
        self.caught({"app/a.cpp": 'return key.starts_with("model.");'}, "a list of keys")

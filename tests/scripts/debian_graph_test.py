"""scripts/debian_graph.py on an archive of some thirty packages, small enough to know every edge by heart.

Laws: every alternative of a relation is an edge; a virtual name is its providers where there are at most eight; no loop
and no pair twice, the strongest kind wins; small and untopical sections give no label; a package's own name is no
feature; a features' word part has length 1 or 0; splits part the labelled nodes; equal lists give equal bytes.
"""

import gzip
import json
import math
import os
import shutil
import unittest
import zlib

from tests.app.program import FolderTest
from tests.scripts.small_archives import archive, bytes_of, lines_of, run_script, stanza


# m1..m9 provide `nine`, m1..m8 `eight`, m1 and m2 `two`; m9 also provides lib-c, which is a package by itself.
PROVIDED = {k: ["nine"] + ["eight"] * (k <= 8) + ["two (= 1)"] * (k <= 2) + ["lib-c"] * (k == 9) for k in range(1, 10)}
PROVIDERS = [stanza(f"m{k}", "contrib/mail", "mail thing", Depends="eight" if k == 3 else "", Provides=", ".join(names))
             for k, names in PROVIDED.items()]
APP = stanza("app", "net", "fast C++ viewer app for the fast editor\n a long description that must not count",
             Size=3072, Installed_Size=2, Architecture="all", Priority="important", Multi_Arch="foreign",
             Depends="lib-a (>= 1) | lib-b, two,\n nine, app, lib-a:any, absent", Pre_Depends="early [amd64]",
             Recommends="lib-a, doc-x | lib-b", Suggests="doc-x, lib-c, nine", Enhances="plain", Breaks="plain")
LIBRARIES = [stanza(f"lib-{x}", "libs", "shared library") for x in "abc"]
UNTOPICAL = [stanza(f"{section}{k}", section) for section in ("metapackages", "oldlibs", "debug") for k in range(3)]
PLAIN = [stanza("early", "net"), stanza("doc-x", "doc", "doc"), stanza("plain", "doc", "Plain-plain")]
SECOND_APP = stanza("app", "doc", "another version", Depends="plain")
ARCHIVE = "\n".join([APP] + LIBRARIES + PROVIDERS + UNTOPICAL + PLAIN + [SECOND_APP])


class TinyArchive(unittest.TestCase):
    def setUp(self):
        self.packages = archive.lists.parse_packages(ARCHIVE)
        self.names = sorted(self.packages)

    def edges_from(self, name):
        """{target name: kind} of one package's edges."""
        edges, kinds = archive.edges.build_edges(self.packages)
        return {self.names[v]: kind for (u, v), kind in zip(edges.tolist(), kinds.tolist()) if self.names[u] == name}

    def words_part(self, name):
        row = archive.features.build_features(self.packages)[self.names.index(name)]
        return {column: value for column, value in row.items() if column < archive.features.NUM_BUCKETS}


class Edges(TinyArchive):
    def test_every_rule_at_once(self):
        # Depends: lib-a | lib-b (both), two (m1 and m2), nine (nine providers: none), app (loop), absent (nobody).
        # lib-c is a package, so m9
        # that provides it is not meant. doc-x is recommended and suggested, lib-a depended on and recommended: the
        # stronger kind stays.
        self.assertEqual(self.edges_from("app"),
                         {"lib-a": 0, "lib-b": 0, "m1": 0, "m2": 0, "early": 0, "doc-x": 1, "lib-c": 2})

    def test_eight_providers_are_taken_and_the_package_itself_is_not(self):
        self.assertEqual(self.edges_from("m3"), {f"m{k}": 0 for k in (1, 2, 4, 5, 6, 7, 8)})

    def test_nobody_else_has_edges_and_none_comes_twice(self):
        edges, _ = archive.edges.build_edges(self.packages)
        pairs = [tuple(pair) for pair in edges.tolist()]
        self.assertEqual(len(pairs), 7 + 7)
        self.assertEqual(pairs, sorted(set(pairs)))

    def test_the_first_stanza_of_a_name_counts(self):
        self.assertNotIn("plain", self.edges_from("app"))
        self.assertEqual(self.packages["app"]["Section"], "net")

    def test_the_strongest_kind_wins_whatever_the_order_of_fields(self):
        for fields in (("Suggests", "Recommends", "Depends"), ("Depends", "Suggests", "Recommends")):
            text = stanza("a", **{field: "b, b" for field in fields}) + "\n" + stanza("b")
            packages = archive.lists.parse_packages(text)
            edges, kinds = archive.edges.build_edges(packages)
            self.assertEqual((edges.tolist(), kinds.tolist()), ([[0, 1]], [0]))


class Labels(TinyArchive):
    def label_names(self, min_section_size):
        labels, classes = archive.labels.build_labels(self.packages, min_section_size)
        names = [classes[label] if label >= 0 else None for label in labels.tolist()]
        return dict(zip(self.names, names)), classes

    def test_large_topical_sections_are_classes(self):
        labels, classes = self.label_names(3)
        self.assertEqual(classes, ["libs", "mail"])
        self.assertEqual([labels["lib-a"], labels["m9"]], ["libs", "mail"])

    def test_small_sections_are_unlabelled(self):
        labels, _ = self.label_names(3)
        self.assertEqual({labels[name] for name in ("app", "early", "doc-x", "plain")}, {None})
        self.assertEqual(self.label_names(2)[0]["app"], "net")

    def test_untopical_sections_are_unlabelled_at_any_size(self):
        labels, _ = self.label_names(1)
        self.assertEqual({labels[f"{section}1"] for section in ("metapackages", "oldlibs", "debug")}, {None})

    def test_three_hundred_are_enough_by_default(self):
        for size, classes in ((299, []), (300, ["net"])):
            packages = archive.lists.parse_packages("\n".join(stanza(f"p{k}", "net") for k in range(size)))
            self.assertEqual(archive.labels.build_labels(packages)[1], classes)


# Six packages of four sources; t6 has no tag, t5 one that is no tag and one of few.
TAGGED = "\n".join([
    stanza("t1", Source="s1", Tag="role::program, interface::x11,\n role::plugin"),
    stanza("t2", Source="s1 (1.2)", Tag="role::plugin"),
    stanza("t3", Tag="interface::x11, interface::text-mode"), stanza("t4", Source="s4", Tag="role::program, interface::text-mode"),
    stanza("t5", Tag="special, field::biology"), stanza("t6")])


class Tags(unittest.TestCase):
    def setUp(self):
        self.packages = archive.lists.parse_packages(TAGGED)
        self.labels, self.columns = archive.labels.build_tag_labels(self.packages, 2)

    def test_a_tag_of_another_facet_says_nothing(self):
        self.assertEqual(self.columns, ["interface::text-mode", "interface::x11", "role::plugin", "role::program"])
        self.assertEqual(self.labels.tolist(), [[0, 1, 1, 1], [-1, -1, 1, 0], [1, 1, -1, -1], [1, 0, 0, 1], [-1] * 4, [-1] * 4])
        self.assertEqual(archive.labels.build_tag_labels(self.packages, 3)[1], [])
        self.assertEqual(archive.labels.build_tag_labels(self.packages, 1)[1][0], "field::biology")

    def test_packages_of_a_source_stay_together(self):
        splits = archive.splits.build_source_splits(self.packages, self.labels)
        self.assertEqual(sorted(splits), ["source_seed0", "source_seed1", "source_seed2"])
        for parts in splits.values():
            self.assertEqual(sorted(id for part in parts.values() for id in part.tolist()), [0, 1, 2, 3])
            self.assertEqual(len({name for name, part in parts.items() if {0, 1} & set(part.tolist())}), 1)
            self.assertTrue(all(part.tolist() == sorted(part.tolist()) for part in parts.values()))


class Features(TinyArchive):
    def test_kept_words(self):
        # `app` is its own name, `for` and `the` are stop words; "C++" is a word, the long description is not read.
        words = archive.features.kept_words("app", self.packages["app"]["Description"])
        self.assertEqual(words, ["fast", "c++", "viewer", "fast", "editor"])
        self.assertEqual(archive.features.kept_words("lib-fast3-x", "fast3 lib library 3d X11 x"), ["library", "x11"])

    def test_own_name_words_leave_no_feature(self):
        self.assertEqual(self.words_part("plain"), {})
        self.assertEqual(self.words_part("doc-x"), {})

    def test_hashed_tf_idf_by_its_formula(self):
        expected = [0.0] * 120
        for word, tf in (("fast", 2), ("c++", 1), ("viewer", 1), ("editor", 1)):  # each in one package only
            code = zlib.crc32(word.encode())
            expected[code % 120] += (1 if code >= 2**31 else -1) * tf * math.log(len(self.names) / 2)
        length = math.sqrt(sum(value * value for value in expected))
        actual = self.words_part("app")
        for column, value in enumerate(expected):
            self.assertAlmostEqual(actual.get(column, 0), value / length, places=6)

    def test_rows_have_length_one_or_zero(self):
        for name in self.names:
            length = math.sqrt(sum(value * value for value in self.words_part(name).values()))
            self.assertAlmostEqual(length, 1 if self.words_part(name) else 0, places=6)

    def test_numbers(self):
        row = archive.features.build_features(self.packages)[self.names.index("app")]
        description = len("fast C++ viewer app for the fast editor")
        expected = [math.log(3), math.log(3073), math.log(1 + 3072 / 3072), math.log(1 + description), 0.5, 1, 1, 1]
        for column, value in enumerate(expected):
            self.assertAlmostEqual(row[120 + column], value, places=6)


class Splits(TinyArchive):
    def test_they_part_the_labelled_nodes(self):
        labels, _ = archive.labels.build_labels(self.packages, 3)
        labelled = [node for node, label in enumerate(labels.tolist()) if label >= 0]
        splits = archive.splits.build_splits(labels)
        self.assertEqual(sorted(splits), ["random_seed0", "random_seed1", "random_seed2"])
        for parts in splits.values():
            self.assertEqual(sorted(id for part in parts.values() for id in part.tolist()), labelled)
            self.assertEqual([len(parts[name]) for name in ("train", "valid", "test")], [6, 2, 4])
            self.assertTrue(all(part.tolist() == sorted(part.tolist()) for part in parts.values()))
        self.assertNotEqual(splits["random_seed0"]["train"].tolist(), splits["random_seed1"]["train"].tolist())


class Program(FolderTest):
    def setUp(self):
        super().setUp()
        self.list = self.path("Packages")
        self.list.write_text(ARCHIVE)

    def path(self, name):
        return self.folder / name

    def build(self, name, *options, **environment):
        done = run_script("--packages", self.list, "--min-section-size", "3", *options, self.path(name), **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return self.path(name)

    def test_the_files_agree_with_one_another(self):
        out = self.build("graph")
        meta = json.loads((out / "meta.json").read_text())
        nodes, edges = meta["num_nodes"], meta["edge_rows"]
        self.assertEqual((nodes, edges, meta["num_classes"], meta["labelled_nodes"]), (25, 14, 2, 12))
        self.assertEqual([lines_of(out, f"raw/num-{what}-list.csv.gz") for what in ("node", "edge")], [["25"], ["14"]])
        for name, rows in (("edge", edges), ("edge-feat", edges), ("node-feat", nodes), ("node-label", nodes)):
            self.assertEqual(len(lines_of(out, f"raw/{name}.csv.gz")), rows)
        self.assertEqual({len(line.split(",")) for line in lines_of(out, "raw/node-feat.csv.gz")}, {128})
        labels = lines_of(out, "raw/node-label.csv.gz")
        self.assertEqual((labels.count("nan"), labels.count("0"), labels.count("1")), (13, 3, 9))
        for part, size in meta["splits"]["random_seed2"].items():
            ids = lines_of(out, f"split/random_seed2/{part}.csv.gz")
            self.assertEqual((len(ids), {labels[int(id)] for id in ids} & {"nan"}), (size, set()))
        self.assertEqual((meta["components"], meta["largest_component"], meta["isolated_nodes"]), (12, 14, 11))

    def test_tags_are_columns_and_all_else_stays(self):
        self.list.write_text(ARCHIVE + "\n" + TAGGED)
        plain, tagged = bytes_of(self.build("plain")), bytes_of(self.build("tagged", "--tags", "--min-tag-size", "2"))
        for name in ("edge", "edge-feat", "node-feat", "num-node-list", "num-edge-list"):
            self.assertEqual(tagged[f"raw/{name}.csv.gz"], plain[f"raw/{name}.csv.gz"])
        labels = lines_of(self.path("tagged"), "raw/node-label.csv.gz")
        self.assertEqual((labels[-6:-2], labels.count("nan,nan,nan,nan")), (["0,1,1,1", "nan,nan,1,0", "1,1,nan,nan", "1,0,0,1"], 27))
        meta = json.loads(tagged["meta.json"])
        self.assertEqual((meta["num_tasks"], meta["labelled_nodes"], meta["class_counts"], meta["known_counts"]),
                         (4, 4, [2, 2, 2, 2], [3, 3, 3, 3]))
        self.assertEqual(sum(meta["splits"]["source_seed1"].values()), 4)
        done = run_script("--packages", self.list, "--tags", self.path("none"))
        self.assertEqual((done.returncode, done.stderr.count("\n"), self.path("none").exists()), (3, 1, False))
        self.assertIn("no tag is on 300 packages", done.stderr)

    def test_equal_lists_give_equal_bytes(self):
        first = bytes_of(self.build("first", PYTHONHASHSEED="1"))
        self.assertEqual(bytes_of(self.build("second", PYTHONHASHSEED="2")), first)
        self.assertEqual(len(first), 16)
        self.assertEqual({data[4:8] for name, data in first.items() if name.endswith(".gz")}, {bytes(4)})  # no time

    def test_a_compressed_list_is_read(self):
        plain = bytes_of(self.build("plain"))
        with gzip.open(self.path("Packages.gz"), "wb") as file:
            file.write(ARCHIVE.encode())
        self.list = self.path("Packages.gz")
        zipped = bytes_of(self.build("zipped"))
        self.assertEqual({name: data for name, data in zipped.items() if name != "meta.json"},
                         {name: data for name, data in plain.items() if name != "meta.json"})

    def test_an_earlier_graph_is_replaced_and_other_folders_are_left_alone(self):
        self.build("graph")
        self.path("graph.tmp").mkdir()  # what an interrupted run leaves
        self.build("graph")
        self.assertEqual(sorted(os.listdir(self.folder)), ["Packages", "graph"])
        done = run_script("--packages", self.list, self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("something else than a graph", done.stderr)
        self.assertTrue(self.list.exists())

    def test_nothing_is_labelled_in_a_small_archive_by_default(self):
        done = run_script("--packages", self.list, self.path("graph"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(set(lines_of(self.path("graph"), "raw/node-label.csv.gz")), {"nan"})
        self.assertEqual(lines_of(self.path("graph"), "split/random_seed0/train.csv.gz"), [])

    @unittest.skipUnless(shutil.which("apt-get") and shutil.which("dpkg"), "no apt on this machine")
    def test_no_lists(self):
        self.path("apt.conf").write_text(f'Dir::State::lists "{self.path("nothing")}";\n')
        done = run_script(self.path("graph"), APT_CONFIG=str(self.path("apt.conf")))
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (3, "", 1))
        self.assertIn("no package list", done.stderr)
        self.assertIn("apt-get update", done.stderr)
        self.assertFalse(self.path("graph").exists() or self.path("graph.tmp").exists())

    def test_no_apt_and_no_such_file(self):
        for arguments, text in (((), "apt-get update"), (("--packages", self.path("absent")), "cannot be read")):
            done = run_script(*arguments, self.path("graph"), PATH=str(self.folder))
            self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1), done.stderr)
            self.assertIn(text, done.stderr)

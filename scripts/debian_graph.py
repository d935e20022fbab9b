#!/usr/bin/python3
"""Builds the Debian package graph from this machine's apt lists, in OGB's raw csv layouts.

    scripts/debian_graph.py OUT_DIR                       from the apt lists (apt-get update fetches them)
    scripts/debian_graph.py --packages FILE OUT_DIR       from one Packages file, plain or .gz, .xz, .bz2
    scripts/debian_graph.py --tags OUT_DIR                with debtags as labels, several per package
    scripts/debian_graph.py --typed OUT_DIR               sources, maintainers and virtual names too, all relations

A real graph of some 60,000 nodes that any Debian machine holds already: who depends on whom, with the archive's own
sections as classes. Only the release itself counts, main and the machine's architecture; the -updates and -security
lists change from day to day and are left out. A package listed twice counts once, as its first stanza.

Nodes   binary packages in ascending order of name (code points); a node's id is its rank.
Edges   u,v: u depends on v, ascending by (u, v), no loops, no duplicates. Fields: Pre-Depends and Depends (kind 0),
        Recommends (1), Suggests (2); of a pair that stands in several fields the strongest kind, the smallest number,
        is kept. Every alternative of "a | b" is taken; versions and architectures are ignored. A name that is a
        package means that package, even where others provide it too. Any other name means its providers where there
        are 1 to 8 of them, the depending package itself counted among them, and nothing otherwise.
Labels  the last part of Section ("contrib/net" is net), where at least 300 packages share it and it is about a topic
        (not metapackages, oldlibs, debug, unknown); class ids follow the names' alphabetical order; nan otherwise.
Splits  random_seed0..2: numpy's RandomState(seed) permutes the labelled ids; the first half trains, the next fifth
        validates, the rest tests (cuts rounded to the nearest whole); each file ascending.

With --tags, a column per debtag ("role::program") that at least 300 packages have, in alphabetical order: 1 where the
package has the tag, 0 where it has another tag of the same facet ("role") instead, nan where it has none of that
facet, because nobody has judged it by that facet then. Splits are over the packages with any label, and
source_seed0..2: the permutation is of source packages, whose binary packages stay together, as siblings share tags.

With --typed, nodes of four types and the relations between them, in OGB's heterogeneous layout (ogbn-mag's). The nodes
of a type are in ascending order of name, and ids count within a type, so packages keep theirs:
  package     as above, with the features below; labels are sections, as above
  source      source packages: the first word of Source, else the package's own name
  maintainer  the whole field Maintainer, name and address
  virtual     purely virtual names: some package provides them, none has them
Only packages have features; a model learns a vector for every other node. A row h,t of HEAD___RELATION___TAIL comes
from h's own stanza; rows ascend, none comes twice, none is a loop:
  package depends package            h names t in Pre-Depends or Depends
  package depends_virtual virtual    the same, where the name is purely virtual
  package RELATION package           the field of that name: recommends, suggests, enhances, breaks, conflicts, replaces
  package provides virtual           h names t in Provides; a name that is a package's is left out, it means the package
  package built_from source          one for each package
  source maintained_by maintainer    that of every package of h, so several where they disagree
Ten relations, depends in two triplets because a triplet has one tail type; every triplet has a name of its own. As
above, every alternative of "a | b" is taken, versions and architectures are ignored, and a name that nobody has or
provides is nothing. Otherwise than above, a pair may stand in several relations, and a virtual name is a node instead
of its providers; in fields other than Pre-Depends, Depends and Provides virtual names are left out. So are triplets
without edges. Forward triplets only: ogbn-mag has no inverses either, so one importer adds them, or not, to both alike.
Splits are source_seed0..2, over the labelled packages. There are no tags: they tell the label. Sources and maintainers
tell some of it too; no sibling of a test package trains, but other packages of its maintainer do.

Features, 128 float32 per node, written with four significant digits:
  0..119    words of the short description d. A word is a lower-case [a-z][a-z0-9+#]+ that is neither a stop word (list
            below) nor a word of the package's own name. With n packages, tf(w, d) occurrences and df(w) packages that
            keep w:  x[crc32(w) mod 120] += s(w) tf(w, d) ln(n / (1 + df(w))),  s = +1 where the top bit of crc32(w) is
            set, else -1; then x / |x|_2. A description without such words leaves a zero row.
  120..127  log1p(Installed-Size in KiB), log1p(Size in bytes), log1p(Size / (1024 (Installed-Size + 1))),
            log1p(characters of d), words of d / 10, Architecture is all, Priority is at least standard, has Multi-Arch.
Section, Tag, Source, Maintainer, name and degree are no features: they would leak the label. The buckets are summed
and divided in float32; words of opposite sign that meet in a bucket can therefore leave a rest of about 1e-8.

The same lists give the same bytes. OUT_DIR appears whole or not at all. Exit codes: 2 usage, 3 nothing to read or
to label.
"""

import argparse
import sys

try:
    import numpy  # noqa: F401, for the parts below
except ImportError:
    sys.exit("debian_graph.py: this python3 has no numpy; install python3-numpy and run it with /usr/bin/python3")

from debian_archive.files import may_be_replaced
from debian_archive.graphs import build, build_typed
from debian_archive.labels import MIN_SECTION_SIZE, MIN_TAG_SIZE
from debian_archive.lists import NoLists, read_packages


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="debian_graph.py", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("out_dir", metavar="OUT_DIR", help="folder to write; an earlier graph there is replaced")
    parser.add_argument("--packages", metavar="FILE", help="read this Packages file instead of the apt lists")
    parser.add_argument("--min-section-size", type=int, default=MIN_SECTION_SIZE, metavar="N",
                        help="packages that make a section a class (default %(default)s)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--tags", action="store_true", help="debtags as labels, several per package")
    kind.add_argument("--typed", action="store_true",
                      help="packages, sources, maintainers and virtual names, in OGB's heterogeneous layout")
    parser.add_argument("--min-tag-size", type=int, default=MIN_TAG_SIZE, metavar="N",
                        help="packages that make a tag a label (default %(default)s)")
    options = parser.parse_args(arguments)
    options.out_dir = options.out_dir.rstrip("/") or "/"
    if not may_be_replaced(options.out_dir):
        parser.error(f"{options.out_dir} exists and holds something else than a graph; name another folder")
    return options


def build_as_asked(options, packages, name, source):
    """Writes the graph; returns what to say of it."""
    if options.typed:
        meta = build_typed(packages, name, source, options.out_dir, options.min_section_size)
        counts = [f"{count} {node_type} nodes" for node_type, count in meta["num_nodes"].items()]
        counts.append(f"{meta['total_edges']} edges in {len(meta['num_edges'])} triplets")
    else:
        meta = build(packages, name, source, options.out_dir, options.min_section_size,
                     options.min_tag_size if options.tags else None)
        counts = [f"{meta['num_nodes']} packages", f"{meta['edge_rows']} edges"]
    counts.append(f"{len(meta['class_names'])} {'tags' if options.tags else 'classes'}")
    return ", ".join(counts + [f"{meta['labelled_nodes']} labelled nodes"])


def main(arguments):
    options = parse_arguments(arguments)
    try:
        packages, name, source = read_packages(options.packages)
        summary = build_as_asked(options, packages, name, source)
    except NoLists as error:
        print(f"debian_graph.py: {error}", file=sys.stderr)
        return 3
    print(f"{options.out_dir}: {summary}, from {source}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

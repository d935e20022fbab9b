"""Reads apt's lists, or one Packages file: {package name: {field: value}}, and what the fields of a stanza say."""

import bz2
import collections
import gzip
import io
import lzma
import os
import re
import subprocess
import zlib

CURE = "run `apt-get update` on a Debian machine, or name a file with --packages"
APT_HELPER = "/usr/lib/apt/apt-helper"
FIELDS = {"Package", "Pre-Depends", "Depends", "Recommends", "Suggests", "Enhances", "Breaks", "Conflicts", "Replaces",
          "Provides", "Section", "Description", "Installed-Size", "Size", "Architecture", "Priority", "Multi-Arch",
          "Tag", "Source", "Maintainer"}


class NoLists(Exception):
    """There is nothing to read; the text says what is missing."""


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8")
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoLists(f"apt's package lists cannot be read ({error}); {CURE}") from error


def release_lists():
    """The codename, architecture and files of the Debian release's own main lists."""
    architecture = output_of("dpkg", "--print-architecture").strip()
    targets = output_of("apt-get", "indextargets", "--format",
                        "$(ORIGIN)|$(COMPONENT)|$(ARCHITECTURE)|$(CODENAME)|$(FILENAME)", "Created-By: Packages")
    files = collections.defaultdict(list)
    for origin, component, arch, codename, path in (line.split("|", 4) for line in targets.splitlines()):
        pocket = re.search(r"-(updates|security|backports|proposed|debug)", codename)
        if (origin, component) == ("Debian", "main") and arch in (architecture, "all") and not pocket:
            files[codename].append(path)
    if not files:
        raise NoLists(f"apt holds no package list of Debian main for {architecture}; {CURE}")
    codename = this_release() if this_release() in files else next(iter(files))
    return codename, architecture, files[codename]


def this_release():
    try:
        with open("/etc/os-release", encoding="utf-8") as lines:
            return dict(line.strip().split("=", 1) for line in lines if "=" in line).get("VERSION_CODENAME", "")
    except OSError:
        return ""


def read_file(path):
    openers = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    with openers.get(os.path.splitext(path)[1], open)(path, "rb") as file:
        return file.read().decode("utf-8")


def parse_packages(text):
    """{name: stanza}, of FIELDS. Folded fields are joined; of Description the first line, the short one, counts."""
    packages, stanza, field = {}, {}, None
    for line in io.StringIO(text + "\n\n"):
        line = line.rstrip("\n")
        if not line.strip():
            if "Package" in stanza:
                packages.setdefault(stanza["Package"], stanza)
            stanza, field = {}, None
        elif line[0] in " \t":
            if field is not None and field != "Description":
                stanza[field] += " " + line.strip()
        else:
            field, _, value = line.partition(":")
            if field in FIELDS:
                stanza[field] = value.strip()
            else:
                field = None
    return packages


def read_packages(path=None):
    """(stanzas by name, graph name, source) of the Packages file at path, or of apt's lists."""
    if path:
        file = os.path.basename(path)
        try:
            text = read_file(path)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as error:
            raise NoLists(f"{path} cannot be read ({error})") from error
        packages, name, source = parse_packages(text), "debian", f"the Packages file {file}"
    else:
        codename, architecture, files = release_lists()
        text = "\n\n".join(output_of(APT_HELPER, "cat-file", file) for file in files)
        packages, name = parse_packages(text), f"debian_{codename}"
        source = f"apt lists of Debian {codename}, main, {architecture}"
    if not packages:
        raise NoLists(f"no package in {source}")
    return packages, name, source


def relation_names(relations):
    """The package names of a relation field, every alternative: "a (>= 1) | b:any, c" gives a, b, c."""
    names = (re.split(r"[\s(:\[<]", relation.strip(), maxsplit=1)[0] for relation in re.split(r"[,|]", relations))
    return [name for name in names if name]


def source_of(name, stanza):
    return stanza.get("Source", name).split(" ")[0]


def tags_of(stanza):
    return {tag for tag in (part.strip() for part in stanza.get("Tag", "").split(",")) if "::" in tag}

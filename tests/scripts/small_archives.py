"""What the tests of scripts/debian_graph.py share: stanzas, runs of the script, and what it wrote."""

import gzip
import os

import debian_archive as archive
from debian_archive import edges, features, labels, lists, relations, splits  # noqa: F401, parts of `archive`
from tests.app.program import ROOT, run_python


def stanza(name, section="net", description="thing", **fields):
    lines = [f"Package: {name}", f"Section: {section}", f"Description: {description}"]
    return "\n".join(lines + [f"{field.replace('_', '-')}: {value}" for field, value in fields.items()]) + "\n"


def run_script(*arguments, **environment):
    return run_python(ROOT / "scripts/debian_graph.py", *arguments, env={**os.environ, **environment})


def lines_of(folder, name):
    with gzip.open(os.path.join(folder, name), "rt") as file:
        return file.read().splitlines()


def bytes_of(folder):
    contents = {}
    for path, _, files in os.walk(folder):
        for file in files:
            with open(os.path.join(path, file), "rb") as opened:
                contents[os.path.relpath(opened.name, folder)] = opened.read()
    return contents

"""What the tests of scripts/debian_graph.py share: stanzas, runs of the script, and what it wrote."""

import gzip
import importlib
import importlib.util
import os
import subprocess
import sys
import unittest

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")
SCRIPT = os.path.join(SCRIPTS, "debian_graph.py")
PARTS = ("edges", "features", "labels", "lists", "relations", "splits")


def load_archive_parts():
    """scripts/debian_archive with its parts."""
    if importlib.util.find_spec("numpy") is None:
        raise unittest.SkipTest("this python3 has no numpy")
    sys.path.insert(0, SCRIPTS)
    for part in PARTS:
        importlib.import_module(f"debian_archive.{part}")
    return sys.modules["debian_archive"]


def stanza(name, section="net", description="thing", **fields):
    lines = [f"Package: {name}", f"Section: {section}", f"Description: {description}"]
    return "\n".join(lines + [f"{field.replace('_', '-')}: {value}" for field, value in fields.items()]) + "\n"


def run_script(*arguments, **environment):
    return subprocess.run([sys.executable, SCRIPT, *arguments], env={**os.environ, **environment}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


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

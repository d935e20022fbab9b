"""A build by another compiler, for another processor or with another MPI, in a folder of its own, build/NAME, and whether it
computes what every one does. What it needs comes from Debian; where that cannot be had the test is skipped with a word.
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import unittest

from tests.app.program import ROOT, ProgramTest
from tests.launcher import Launcher

RANKS = (1, 2, 4)


def output_of(command, what, **options):
    """Of a command that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise AssertionError(f"{what}: {shlex.join(map(str, command))} ended with {done.returncode}:\n{done.stdout[-8000:]}")
    return done.stdout


# ---- what Debian has

def apt(*words, what, **options):
    """Skips the test that asked where apt cannot do it."""
    if shutil.which("apt-get") is None:
        raise unittest.SkipTest(f"{what}: no apt-get here")
    done = subprocess.run(["apt-get", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", *words],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        reason = next((line for line in done.stdout.splitlines() if line.startswith("E:")), "no reason given")
        raise unittest.SkipTest(f"{what}: apt cannot bring it: {reason}")


def need(*packages):
    """Installs those that are missing, where root may."""
    asked = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *packages], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True).stdout if shutil.which("dpkg-query") else ""
    missing = sorted(set(packages) - {line.split()[1] for line in asked.splitlines() if line.startswith("installed ")})
    if not missing:
        return
    what = "no " + " ".join(missing)
    if os.geteuid() != 0:
        raise unittest.SkipTest(f"{what}, and not root to install it")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    apt("update", what=what, env=env)
    apt("install", *missing, what=what, env=env)


def root_of(architecture, *packages):
    """A folder with these packages of another architecture and all that they depend on, only unpacked. Needs no root: apt has
    folders of its own there, and this machine's packages are not touched."""
    place = ROOT / "build" / f"{architecture}-root"
    done = place / "packages"
    if done.exists() and done.read_text().split() == list(packages):
        return place / "root"
    for folder in ("state/lists/partial", "cache/archives/partial", "root"):
        (place / folder).mkdir(parents=True, exist_ok=True)
    (place / "status").touch()
    (place / "apt.conf").write_text(f'APT::Architecture "{architecture}";\nAPT::Architectures {{ "{architecture}"; }};\n'
                                    f'Dir::State "{place}/state/";\nDir::State::status "{place}/status";\n'
                                    f'Dir::Cache "{place}/cache/";\nAcquire::Languages "none";\nAPT::Sandbox::User "";\n')
    env = dict(os.environ, APT_CONFIG=str(place / "apt.conf"))
    apt("update", "-o", "APT::Update::Error-Mode=any", what=f"no packages of {architecture}", env=env)
    apt("install", "--download-only", *packages, what=f"no packages of {architecture}", env=env)
    for package in sorted((place / "cache/archives").glob("*.deb")):
        output_of(["dpkg-deb", "-x", package, place / "root"], "unpacking")
    stay_inside(place / "root")
    shutil.rmtree(place / "cache")
    done.write_text(" ".join(packages))
    return place / "root"


def stay_inside(root):
    """Links to absolute paths, libm.so among them, become links within that root: a linker follows them as they are."""
    for link in (path for path in root.rglob("*") if path.is_symlink()):
        if (target := os.readlink(link)).startswith("/"):
            link.unlink()
            link.symlink_to(os.path.relpath(f"{root}{target}", link.parent))


# ---- builds

def cached(compiler):
    """By ccache, where the builds beside it are."""
    return f"ccache {compiler}" if os.environ.get("OMPI_CXX", "").startswith("ccache ") else compiler


class OtherBuild:
    """build/NAME: `variables` of make, the environment of its compilation and of its runs, its launcher, what ranks run under."""

    def __init__(self, name, *variables, compiled_with=None, run_with=None, launcher="mpirun", under=()):
        self.folder, self.variables = pathlib.Path("build") / name, variables
        self.compiled_with, self.launcher, self.under = compiled_with or {}, launcher, under
        self.run_with = {**Launcher(launcher).environment, **(run_with or {})}
        self.program = str(ROOT / self.folder / "espalier")

    def make(self, *targets):
        """By a make that knows nothing of the one that started the tests."""
        env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL")}
        output_of(["make", f"-j{os.cpu_count()}", f"BUILD={self.folder}", *self.variables, *map(str, targets)], "no build", cwd=ROOT,
                  env={**env, **self.compiled_with})

    def make_program(self):
        self.make(self.folder / "espalier")

    def make_tests(self):
        self.make(*(self.folder / source.relative_to(ROOT).with_suffix("") for source in sorted(ROOT.glob("tests/*/*_test.cpp"))))

    def run_tests(self, *words):
        """tests/run.py; what it said."""
        env = dict(os.environ, **self.run_with, ESPALIER_LAUNCHER=self.launcher, ESPALIER_UNDER=shlex.join(self.under))
        env.pop("ESPALIER_LONG", None)
        return output_of([sys.executable, "-u", "tests/run.py", "--build", str(self.folder), "--no-gpu", *words], "tests", cwd=ROOT,
                         env=env)

    def espalier(self, ranks, *arguments):
        command = Launcher(self.launcher, self.under).command(ranks, self.program, *arguments)
        return output_of(command, self.folder, timeout=600, env=dict(os.environ, **self.run_with))


class Elsewhere(ProgramTest):
    def expect_the_same_bits(self, build, ranks=RANKS):
        """All that `espalier verify` computes has the values that are compiled in, which tests/app/verify_test.py holds here."""
        for count in ranks:
            self.assertRegex(build.espalier(count, "verify", "--device", "cpu"), r"(?m)^\d+ lines, all as expected$")

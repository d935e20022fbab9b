"""N hosts on this machine: network namespaces on a bridge, each with an address, a name and a link of a chosen rate.

A host is a namespace whose eth0 is one end of a pair; the other end is a port of the bridge. A token bucket (tc tbf) at either
end holds the host to its rate in each direction, and the port's counters are what its link carried. Cores, memory and files
are the machine's: hosts share them.

Names carry the process that made them (esp1234-1, esp1234-2, ...), so that two runs don't meet, and what a run has left that
was killed goes when the next one begins.

Root only; reason_to_skip() says what else is missing. The kernel that this was tried with has no netem: links have a rate
and no delay.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
NETWORK = "10.77.0"  # the bridge has no address here: only hosts see this network
BURST_SECONDS, LEAST_BURST = 0.002, 80000  # what an idle link saves up; more than the largest packet that the kernel makes
FOREIGN = re.compile(r"(OMPI|PMIX|PRTE|OMP)_")


class Broken(Exception):
    """A command that makes hosts, or looks at them, has failed; the text is its own."""


def tool(*words, check=True):
    """What `ip` or `tc` prints."""
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    except OSError as error:
        raise Broken(f"{words[0]}: {error.strerror}") from None
    if check and done.returncode != 0:
        raise Broken(f"{' '.join(map(str, words))}: {(done.stderr.strip() or 'failed').splitlines()[-1]}")
    return done.stdout


def reason_to_skip():
    """Why this machine can have no hosts; None where it can."""
    if os.geteuid() != 0:
        return "not root"
    for program in ("ip", "tc", "unshare", "mpirun"):
        if not shutil.which(program):
            return f"no `{program}`"
    if "Open MPI" not in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout:
        return "mpirun is not Open MPI's"
    try:
        with Hosts(1, 1.0):
            return None
    except Broken as broken:
        return str(broken)


class Hosts:
    """They are there as long as the `with`, however it ends."""

    def __init__(self, count, gigabits=None):
        """gigabits: per second and direction; None: as fast as the kernel copies."""
        self.count, self.gigabits = count, gigabits
        self.prefix = f"esp{os.getpid()}"
        self.names = [f"{self.prefix}-{number}" for number in range(1, count + 1)]
        self.addresses = [f"{NETWORK}.{number}" for number in range(1, count + 1)]

    def __enter__(self):
        remove_leftovers()
        try:
            tool("ip", "link", "add", self.prefix, "type", "bridge")
            tool("ip", "link", "set", self.prefix, "up")
            for name, address in zip(self.names, self.addresses):
                self._make(name, address)
            self.set_rate(self.gigabits)
        except BaseException:
            remove(self.prefix)
            raise
        return self

    def __exit__(self, *_):
        remove(self.prefix)

    def _make(self, name, address):
        tool("ip", "netns", "add", name)
        tool("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        tool("ip", "link", "set", name, "master", self.prefix, "up")
        tool("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        tool("ip", "-n", name, "link", "set", "eth0", "up")
        tool("ip", "-n", name, "link", "set", "lo", "up")

    def set_rate(self, gigabits):
        self.gigabits = gigabits
        for name in self.names:
            for where in ([], ["ip", "netns", "exec", name]):
                device = "eth0" if where else name
                tool(*where, "tc", "qdisc", "del", "dev", device, "root", check=False)
                if gigabits is not None:
                    tool(*where, "tc", "qdisc", "add", "dev", device, "root", *bucket(gigabits))

    def inside(self, host, *command):
        """The command as host number `host`, from 0, runs it: in its network and under its name."""
        name = self.names[host]
        return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name, *map(str, command)]

    def mpirun(self, ranks_per_host=1, parameters=None):
        """(words before a program, environment): its ranks in order, so many on each host. Between hosts they speak TCP.
        parameters: more of Open MPI's."""
        slots = ",".join(f"{address}:{ranks_per_host}" for address in self.addresses)
        within = "self,tcp" if ranks_per_host == 1 else "self,vader,tcp"
        settings = {"plm_rsh_agent": f"{HERE / 'agent.sh'} {self.prefix}", "pml": "ob1", "btl": within,
                    "btl_tcp_if_include": f"{NETWORK}.0/24", "oob_tcp_if_include": f"{NETWORK}.0/24",
                    "mpi_yield_when_idle": "1", "rmaps_base_oversubscribe": "1", **(parameters or {})}
        words = [word for name, value in settings.items() for word in ("--mca", name, value)]
        passed = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS")
        return (self.inside(0, "mpirun", "-q", "--host", slots, "-np", self.count * ranks_per_host, "--bind-to", "none", *words,
                            *(word for name in passed for word in ("-x", name))), mpi_environment())

    def end_processes(self):
        """What mpirun's daemons may have left on the hosts."""
        for name in self.names:
            end_processes(name)

    def carried(self):
        """[(bytes from the host, bytes to it)] since it was made, by its port's counters."""
        def count(name, what):
            return int(pathlib.Path(f"/sys/class/net/{name}/statistics/{what}").read_text())
        return [(count(name, "rx_bytes"), count(name, "tx_bytes")) for name in self.names]

    def reached(self, seconds=0.5):
        """Gbit/s of one stream from the first host to the last one: what a program can have of the rate."""
        script = ("import socket, sys, time\n"
                  "address, seconds = sys.argv[1], float(sys.argv[2])\n")
        sink = self.inside(self.count - 1, "python3", "-c", script + (
            "one = socket.create_server((address, 7077)); print('ready', flush=True); one.settimeout(20)\n"
            "peer = one.accept()[0]; peer.settimeout(20); total, begin = 0, None\n"
            "while True:\n"
            "    got = len(peer.recv(1 << 20)); now = time.perf_counter()\n"
            "    begin = begin or now; total += got\n"
            "    if got == 0: break\n"
            "print(total * 8e-9 / max(now - begin, 1e-9))\n"), self.addresses[-1], seconds)
        source = self.inside(0, "python3", "-c", script + (
            "peer = socket.create_connection((address, 7077), 20); peer.settimeout(20); end = time.perf_counter() + seconds\n"
            "while time.perf_counter() < end: peer.sendall(bytes(1 << 18))\n"), self.addresses[-1], seconds)
        with subprocess.Popen(sink, stdout=subprocess.PIPE, text=True) as receiver:
            receiver.stdout.readline()
            subprocess.run(source, check=False, timeout=60)
            said = receiver.stdout.read().split()
        return float(said[0]) if said else 0.0


def bucket(gigabits):
    """tc's words for a link of this rate."""
    burst = max(LEAST_BURST, int(gigabits * 1e9 / 8 * BURST_SECONDS))
    return ["tbf", "rate", f"{round(gigabits * 1e6)}kbit", "burst", str(burst), "latency", "100ms"]


def mpi_environment():
    """This process's without what would change how ranks start, and what ranks need that share cores, as root."""
    kept = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
    return {**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive",
            "OMP_NUM_THREADS": "1"}


def end_processes(name):
    """All that run in a host."""
    for _ in range(50):
        processes = tool("ip", "netns", "pids", name, check=False).split()
        if not processes:
            return
        for process in processes:
            try:
                os.kill(int(process), signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def remove(prefix):
    """The hosts of one process, what runs in them, and their bridge; whatever of it is there."""
    for name in (name for name in host_names() if name.rpartition("-")[0] == prefix):
        end_processes(name)
        tool("ip", "link", "del", name, check=False)
        tool("ip", "netns", "del", name, check=False)
    tool("ip", "link", "del", prefix, check=False)


def host_names():
    """Of all runs: esp1234-1, ..."""
    return [name for name in sorted(os.listdir("/run/netns") if os.path.isdir("/run/netns") else [])
            if re.fullmatch(r"esp\d+-\d+", name)]


def remove_leftovers():
    """Of runs that were killed."""
    bridges = [name for name in os.listdir("/sys/class/net") if re.fullmatch(r"esp\d+", name)]
    for prefix in {name.rpartition("-")[0] for name in host_names()} | set(bridges):
        if not os.path.exists(f"/proc/{prefix[3:]}"):
            remove(prefix)

"""Real launchers for the tests: a Slurm of our own, and what it needs."""

import getpass
import os
import socket
import subprocess
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from needs import need, wait_until

from chapter3.separate_hosts import two_hosts

NOT_ALLOWED = ("not permitted", "denied", "read-only", "not supported", "is unknown")


@contextmanager
def separate_hosts(**options):
    """Two hosts; skip, with the command, where kernel or container forbid them."""
    need("iproute2", "ip", "tc")
    need("util-linux", "unshare", "nsenter")
    with ExitStack() as stack:
        try:
            hosts = stack.enter_context(two_hosts(**options))
        except RuntimeError as error:
            if any(reason in str(error).lower() for reason in NOT_ALLOWED):
                pytest.skip(f"no separate hosts here: {error}")
            raise
        yield hosts


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Slurm:
    """A running Slurm: `run` a client program of it, or `submit` a job."""

    def __init__(self, folder, here):
        self.folder, self.here = folder, here

    def run(self, *command, **options):
        return subprocess.run(
            self.here(*command),
            capture_output=True,
            text=True,
            timeout=180,
            check=True,
            **options,
        ).stdout

    def submit(self, *command, seconds=180):
        """Submit a job with sbatch, wait for its end, return its state and outputs."""
        work = Path(tempfile.mkdtemp(dir=self.folder))
        number = self.run("sbatch", "--parsable", f"--chdir={work}", *command).strip()

        def state():
            told = self.run("scontrol", "show", "job", number)
            return told.partition("JobState=")[2].split()[0]

        done = ("COMPLETED", "FAILED", "CANCELLED", "NODE_FAIL", "TIMEOUT")
        wait_until(lambda: state() in done, f"job {number}", seconds)
        return state(), "\n".join(o.read_text() for o in sorted(work.glob("*.out")))


@contextmanager
def slurm(monkeypatch, hosts=()):
    """Start a Slurm of our own: one node here, or one on each of `hosts`.

    It has its own key, ports and folders; all of it is gone at the end.
    """
    # Daemons live where the path of an ordinary user may not lead.
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin:/sbin")
    need("slurm-wlm munge", "sbatch", "srun", "slurmctld", "slurmd", "munged")
    commands = {host.name: host.command for host in hosts}
    addresses = {host.name: f"NodeAddr={host.address}" for host in hosts}
    name, address = socket.gethostname(), "127.0.0.1"
    if hosts:
        name, address = hosts[0].name, hosts[0].address
    else:
        commands = {"localhost": lambda *command: list(command)}
        addresses = {"localhost": f"NodeHostname={name} NodeAddr={address}"}
    here = next(iter(commands.values()))
    with tempfile.TemporaryDirectory(prefix="slurm") as made, ExitStack() as stack:
        folder = Path(made)
        folder.chmod(0o755)  # munged wants its socket to be within everyone's reach
        for part in ("state", *(f"spool-{node}" for node in commands)):
            (folder / part).mkdir()
        conf = folder / "slurm.conf"
        monkeypatch.setenv("SLURM_CONF", str(conf))
        conf.write_text(
            CONF.format(
                folder=folder,
                controller=f"{name}({address})",
                user=getpass.getuser(),
                ports=[free_port(), free_port()],
                # JAX's port follows from it; several of these may run at a time.
                first_job=os.getpid() % 4000 + 1,
                nodes="\n".join(
                    f"NodeName={n} {addresses[n]} CPUs=2" for n in commands
                ),
                names=",".join(commands),
            )
        )
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        log = stack.enter_context((folder / "log").open("wb"))

        def start(*command):
            process = subprocess.Popen(command, stdout=log, stderr=log)
            stack.callback(stop, process)

        files = ("socket", "pid", "log", "seed")
        options = [f"--{f}-file={folder}/munge.{f}" for f in files[1:]]
        socket_file = folder / "munge.socket"
        start(
            *("munged", "--foreground", f"--key-file={key}"),
            *(f"--socket={socket_file}", *options),
        )
        wait_until(socket_file.exists, "munged")
        start(*here("slurmctld", "-D", "-i"))
        for node, there in commands.items():
            start(*there("slurmd", "-D", "-N", node))
        running = Slurm(folder, here)

        def idle():
            told = subprocess.run(
                here("sinfo", "-h", "-o", "%T %D"), capture_output=True, text=True
            )
            return told.stdout.split() == ["idle", str(len(commands))]

        try:
            wait_until(idle, "slurmd")
        except AssertionError as error:
            error.add_note((folder / "log").read_text())
            raise
        yield running


def stop(process):
    """End a daemon, gently first."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


CONF = """
ClusterName=test
SlurmctldHost={controller}
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
ReturnToService=2
FirstJobId={first_job}
{nodes}
PartitionName=all Nodes={names} Default=YES State=UP
"""

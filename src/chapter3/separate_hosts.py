"""Two hosts on one machine: Linux namespaces that are joined by a virtual cable.

Each host has a network of its own (one address, one cable), a host name, and a file
`/etc/hosts` that says what its name means. Nothing outside is touched, and nothing
stays: a host lives as long as the process that holds it, which ends when this one
does. Linux as root only; `util-linux` and `iproute2` must be installed.

Source: the manual pages namespaces(7), veth(4) and tc-tbf(8).
"""

import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

_SPLIT = ["unshare", "--net", "--uts", "--mount"]


@dataclass(frozen=True)
class Host:
    """One of the two hosts.

    Attributes:
        name: its host name.
        address: its address on the cable.
        pid: the process that keeps it alive.
    """

    name: str
    address: str
    pid: int

    def command(self, *command: str) -> list[str]:
        """Return the command line that runs `command` there, in the same folder."""
        enter = ["nsenter", f"--target={self.pid}", *_SPLIT[1:], "--"]
        return [*enter, "env", f"--chdir={Path.cwd()}", *command]

    def run(self, *command: str) -> str:
        """Run a command on this host and return what it printed.

        Raises:
            RuntimeError: it failed; with its message.
        """
        return _run(*self.command(*command))

    def limit(self, megabits: float | None) -> None:
        """Let this host send at most so many megabits per second (None: no limit).

        A token bucket: what fits into a millisecond may leave at once (at least 8 KiB),
        the rest at the rate. Up to 512 KiB wait, what is more is lost, as on a real
        link.

        Raises:
            RuntimeError: the kernel has no token bucket.
        """
        root = ("dev", "cable", "root")
        if "tbf" in self.run("tc", "qdisc", "show", "dev", "cable"):
            self.run("tc", "qdisc", "del", *root)
        if megabits is not None:
            burst = max(8 * 1024, round(megabits * 1e6 / 8 / 1000))
            rate = ("rate", f"{megabits:g}mbit", "burst", str(burst))
            self.run("tc", "qdisc", "add", *root, "tbf", *rate, "limit", "512kb")


@contextmanager
def two_hosts(*, name_is_loopback: bool = False) -> Generator[tuple[Host, Host]]:
    """Set up two hosts that reach each other, and take them down at the end.

    Args:
        name_is_loopback: let each host resolve its own name to 127.0.1.1, as Debian and
            Ubuntu set it up, instead of to its address.

    Yields:
        The hosts `host0` and `host1`.

    Raises:
        RuntimeError: this machine does not allow it; with the command that was refused.
    """
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is not installed")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        addresses = {"host0": "10.38.0.1", "host1": "10.38.0.2"}
        hosts = [
            Host(name, address, stack.enter_context(_held()))
            for name, address in addresses.items()
        ]
        # Both ends have the same name, each on its host.
        ends = [("name", "cable", "netns", str(host.pid)) for host in hosts]
        _run("ip", "link", "add", *ends[0], "type", "veth", "peer", *ends[1])
        for host in hosts:
            lines = ["127.0.0.1 localhost"]
            for name, address in addresses.items():
                own = name_is_loopback and name == host.name
                lines.append(f"{'127.0.1.1' if own else address} {name}")
            file = folder / host.name
            file.write_text("\n".join(lines) + "\n")
            host.run("mount", "--bind", str(file), "/etc/hosts")
            host.run("hostname", host.name)
            host.run("ip", "link", "set", "lo", "up")
            host.run("ip", "address", "add", f"{host.address}/24", "dev", "cable")
            host.run("ip", "link", "set", "cable", "up")
        yield hosts[0], hosts[1]


@contextmanager
def _held() -> Generator[int]:
    """Hold one set of new namespaces by a process that ends when its input does."""
    command = [*_SPLIT, "sh", "-c", "echo ready; exec cat"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdin and holder.stdout and holder.stderr
        if holder.stdout.readline() != "ready\n":
            raise RuntimeError(f"{' '.join(command)}: {holder.stderr.read().strip()}")
        yield holder.pid
        holder.stdin.close()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout

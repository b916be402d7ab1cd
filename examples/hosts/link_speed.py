"""Measure how the speed of the link between two hosts decides what training costs.

Sets up two hosts on this machine, limits the link between them to one speed after
another, and measures all-reduces of several sizes, a training step, and three ways to
sum over two hosts of four devices. Notes, too, how it fails if the hosts' names mean
loopback. Prints the times beside the prediction. The chapter draws its figures from
what --save wrote to src/chapter3/links.json.

Linux and root; if you are not root, put `unshare --map-root-user --net --mount` in
front. On a busy machine, `chrt --rr 5` in front, as root, keeps the others out of the
short times.
"""

import argparse
import datetime
import os
import platform
import sys
from pathlib import Path

import jax

from chapter3 import links
from chapter3.commandline import positive, refuse
from chapter3.launcher import LaunchError, ProcessFailedError, launch
from chapter3.separate_hosts import two_hosts

WORKER = Path(__file__).parents[1] / "processes/link_times.py"
SPEEDS = (1000, 300, 100, 30, 10)
SIZES = ("4", "4096", "65536", "262144", "1048576", "4194304")
WAYS = ("flat", "mixed", "hierarchical")


def arguments():
    """Read the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "--speeds", type=positive, nargs="*", default=SPEEDS, help="megabits per second"
    )
    options.add_argument("--sizes", nargs="*", default=SIZES, help="bytes per device")
    options.add_argument("--most", type=positive, default=51, help="calls of each")
    options.add_argument("--save", type=Path, metavar="FILE", help="write JSON there")
    return options.parse_args()


def about_this_machine() -> str:
    """Describe what the times were measured on."""
    cpu = Path("/proc/cpuinfo").read_text()
    kind = "virtual machine" if " hypervisor " in cpu else "machine"
    name = cpu.partition("model name\t: ")[2].partition("\n")[0]
    return f"{os.cpu_count()} cores ({name}) of an {platform.machine()} {kind}"


def measure(megabits: int | None, devices: int, *options: str) -> dict:
    """Run the worker on two hosts; return the report of process 0."""
    with two_hosts() as hosts:
        for host in hosts:
            host.limit(megabits)
        reports = launch(WORKER, *options, devices=devices, hosts=hosts, seconds=600)
        return {"megabits": megabits, **reports[0].value}


def failure_by_name() -> str:
    """Run the worker on two hosts whose names mean loopback; return what it says."""
    with two_hosts(name_is_loopback=True) as hosts:
        try:
            launch(WORKER, devices=1, hosts=hosts)
        except ProcessFailedError as error:
            return str(error)
    raise RuntimeError("names that mean loopback do no harm any more")


def main() -> int:
    """Measure, print, save; return the exit status."""
    options = arguments()
    most = ("--most", str(options.most))
    found = {
        "date": datetime.date.today().isoformat(),
        "machine": about_this_machine(),
        "jax": jax.__version__,
        "most": options.most,
        "real time": os.sched_getscheduler(0) != os.SCHED_OTHER,
        "load before": os.getloadavg()[0],
    }
    try:
        found["links"] = [
            measure(speed, 1, "--train", "--sizes", *options.sizes, *most)
            for speed in (None, *options.speeds)
        ]
        found["name is loopback"] = failure_by_name()
        found["ways"] = measure(100, 4, "--kinds", *WAYS, *most)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    except RuntimeError as error:
        return refuse(f"This machine allows no separate hosts: {error}")
    found["load after"] = os.getloadavg()[0]
    measured = links.Measurements(found)
    for line in measured.lines():
        print(line)
    if options.save:
        measured.save(options.save)
    return 0


if __name__ == "__main__":
    sys.exit(main())

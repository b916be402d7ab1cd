"""Start several processes that compute as one program, and check what they report.

Each process runs examples/processes/two_processes.py with simulated CPU devices of its
own. Prints what every process saw, three sums over all devices, and how far the trained
parameters are apart between processes and from one device in float64. Ends with status
1 if anything is wrong or a process fails.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from chapter3.commandline import positive, refuse
from chapter3.launcher import LaunchError, launch
from chapter3.reference import descend, linear_data

WORKER = Path(__file__).parent / "processes/two_processes.py"


def arguments():
    """Read the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    options.add_argument("--processes", type=positive, default=2, help="how many")
    options.add_argument(
        "--devices",
        "--simulate",
        type=positive,
        default=4,
        help="simulated CPU devices in each process",
    )
    options.add_argument("--steps", type=positive, default=30, help="of training")
    options.add_argument("--rows", type=positive, default=64, help="of a global batch")
    options.add_argument("--rate", type=float, default=0.1, help="learning rate")
    options.add_argument("--seconds", type=positive, default=120, help="time limit")
    return options.parse_args()


def differences(
    seen: Sequence[dict[str, Any]], rows: int, steps: int, rate: float
) -> tuple[float, float]:
    """Compare what was trained: w, b and the last loss.

    Returns:
        The largest difference between two processes, and from one device in float64.
    """
    trained = np.array([[*s["w"], s["b"], s["losses"][-1]] for s in seen])
    zero = {"w": np.zeros((5, 1)), "b": np.zeros(1)}
    exact, losses = descend(zero, *linear_data(rows), rate, steps)
    expected = np.array([*exact["w"][:, 0], *exact["b"], losses[-1]])
    apart = np.abs(trained - trained[0]).max()
    return float(apart), float(np.abs(trained - expected).max())


def wrong_sums(seen: Sequence[dict[str, Any]]) -> list[int]:
    """Return the processes in which a sum of 1 to N over all N devices is wrong."""
    n = len(seen[0]["devices"])
    total = n * (n + 1) / 2
    return [
        s["process"]
        for s in seen
        if {s["shard_map"], s["jit"], *s["pmap"]} != {total}
        or len(s["pmap"]) != len(s["local devices"])
    ]


def main() -> int:
    """Start the processes, print what they report, and return the exit status."""
    options = arguments()
    everywhere = options.processes * options.devices
    if options.rows % everywhere:
        return refuse(f"rows={options.rows} must be a multiple of {everywhere} devices")
    try:
        reports = launch(
            WORKER,
            f"--steps={options.steps}",
            f"--rows={options.rows}",
            f"--rate={options.rate}",
            processes=options.processes,
            devices=options.devices,
            seconds=options.seconds,
        )
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1

    seen = [one.value for one in reports]
    print(f"{options.processes} processes, {everywhere} devices {seen[0]['devices']}")
    for s in seen:
        print(
            f"process {s['process']}: devices {s['local devices']}, "
            f"rows {s['rows'][0]} to {s['rows'][1] - 1}, "
            f"sums {s['shard_map']:.0f} (shard_map) {s['jit']:.0f} (jit) "
            f"{' '.join(f'{p:.0f}' for p in s['pmap'])} (pmap), "
            f"loss {s['losses'][0]:.5f} -> {s['losses'][-1]:.5f}"
        )
    apart, from_float64 = differences(seen, options.rows, options.steps, options.rate)
    print(f"largest difference between processes {apart:.1e}, from float64 ", end="")
    print(f"{from_float64:.1e}")
    # float32 sums in another order; the loss before the first step is about 70.
    wrong = bool(wrong_sums(seen)) or apart != 0 or from_float64 > 1e-4
    if wrong:
        print("WRONG", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())

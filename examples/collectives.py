"""Run every collective on all devices, check the result, and count the bytes.

Runs on the accelerators of this machine if it has any, else on simulated CPU devices.
Prints a line for each collective and mesh axis: bytes held, bytes sent by the ring
formula for the array, and by that formula for the operations, sizes and groups that the
compiled program holds. Ends with status 1 if a result is wrong
or the counts differ.
"""

import sys

from chapter3.commandline import parser, positive, refuse


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument(
        "--width", type=positive, help="float32 values on each device, a multiple of N"
    )
    return options.parse_args()


def main() -> int:
    """Measure, print the table, and return the exit status."""
    options = arguments()
    from chapter3.devices import find_devices

    devices = find_devices(options.simulate)
    # JAX is used from here on: the devices are fixed.
    from chapter3.collectives import OPERATIONS, measure

    n = len(devices)
    width = options.width or 128 * n
    if n < 2:
        return refuse("a collective needs at least two devices; try --simulate 8")
    if width % n:
        return refuse(f"{width=} must be a multiple of the {n} devices")
    meshes = [({"i": n}, "i")]
    if n >= 4 and n % 2 == 0:
        grid = {"data": n // 2, "model": 2}
        meshes += [(grid, "data"), (grid, "model")]

    print(f"{n} devices of platform {devices[0].platform}")
    print(f"{'operation':13} {'axis':12} {'held':>8} {'formula':>9} {'compiled':>9}")
    wrong = False
    for name in OPERATIONS:
        for axes, over in meshes:
            found = measure(name, axes, over, width)
            ok = found.correct and found.predicted == found.compiled
            wrong |= not ok
            print(
                f"{name:13} {over + ' of ' + 'x'.join(map(str, axes.values())):12} "
                f"{found.held:8} {found.predicted:9.0f} {found.compiled:9.0f}"
                f"{'' if ok else '  WRONG'}"
            )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())

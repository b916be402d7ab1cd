"""Print what each strategy keeps and sends, for a model, a mesh and links of yours.

The first table is computed from formulas. The second runs every strategy on a small
model, on the accelerators of this machine if it has any, else on simulated CPU devices,
and compares the formulas with what was measured. Ends with status 1 if they differ.
"""

import sys

from chapter3.commandline import parser, positive, refuse


def arguments():
    """Read the command line."""
    options = parser(__doc__)
    options.add_argument("--parameters", type=float, default=7.5e9, help="of the model")
    options.add_argument("--layers", type=positive, default=36, help="of the model")
    options.add_argument("--width", type=positive, default=4096, help="of a layer")
    options.add_argument(
        "--tokens", type=positive, default=2**20, help="of a global batch"
    )
    options.add_argument("--devices", type=positive, default=64, help="how many")
    options.add_argument(
        "--tensor", type=positive, default=8, help="size of a TP group"
    )
    options.add_argument("--stages", type=positive, default=8, help="of a pipeline")
    options.add_argument(
        "--microbatches", type=positive, default=32, help="of a pipeline"
    )
    options.add_argument("--fast", type=float, default=300, help="GB/s in a TP group")
    options.add_argument("--slow", type=float, default=25, help="GB/s elsewhere")
    options.add_argument("--memory", type=float, default=80, help="GB of a device")
    return options.parse_args()


def main() -> int:
    """Print both tables, and return the exit status."""
    options = arguments()
    from chapter3.choice import Plan, costs
    from chapter3.devices import find_devices
    from chapter3.ledger import Problem, entries

    try:
        plan = Plan(
            options.parameters,
            options.layers,
            options.width,
            options.tokens,
            options.devices,
            options.tensor,
            options.stages,
            options.microbatches,
            options.fast * 1e9,
            options.slow * 1e9,
        )
    except ValueError as error:
        return refuse(str(error))
    print(f"{'strategy':18} {'GB kept':>8} {'fits':>5} {'GB sent':>8} {'seconds':>8}")
    for name, cost in costs(plan).items():
        fits = "yes" if cost.kept <= options.memory * 1e9 else "no"
        print(
            f"{name:18} {cost.kept / 1e9:8.1f} {fits:>5} {cost.sent / 1e9:8.1f} "
            f"{cost.seconds:8.2f}"
        )

    n = len(find_devices(options.simulate))
    if n < 2:
        return refuse("measuring needs at least two devices; try --simulate 8")
    problem = Problem(n, 2 * n, 4 * n, 4 * n, n)
    print(f"\nmeasured on {n} devices, bytes per device")
    print(f"{'strategy':24} {'kept':>8} {'sent':>8} {'predicted':>9}  difference")
    wrong = False
    for entry in entries(problem):
        ok = entry.agrees and entry.difference < 1e-3
        wrong |= not ok
        print(
            f"{entry.strategy:24} {sum(m for _, m in entry.kept.values()):8.0f} "
            f"{entry.sent[1]:8.0f} {entry.sent[0]:9.0f}  {entry.difference:.0e}"
            f"{'' if ok else '  WRONG'}"
        )
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())

"""Figure of training runs that should be one."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from chapter3.figures._style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    VERMILION,
    WIDTH,
    styled,
)

_LOOKS = ((BLUE, "-", 5), (ORANGE, "-", 2.5), (GREEN, "--", 2), (VERMILION, ":", 2))


@styled
def draw_training(
    losses: Mapping[str, Sequence[float]],
    reference: Sequence[float],
    floor: float,
) -> Figure:
    """Draw the loss of several runs over the epochs, and how far each is from another.

    Args:
        losses: by run, the loss before each epoch; at most four runs.
        reference: the loss of the run that they should equal.
        floor: the smallest loss that any parameters have on these data.
    """
    figure = Figure(figsize=(WIDTH, 4.6))
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    epochs = range(1, len(reference) + 1)
    for (name, run), (colour, dashes, width) in zip(
        losses.items(), _LOOKS, strict=False
    ):
        above.plot(epochs, run, dashes, color=colour, linewidth=width, label=name)
        gaps = [abs(a - b) / b for a, b in zip(run, reference, strict=True)]
        below.plot(epochs, gaps, dashes, color=colour, linewidth=min(width, 2.5))
    above.plot(
        epochs[::5], reference[::5], "o", color=INK, markersize=3.5, label="float64"
    )
    above.axhline(floor, color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
    above.text(1.6, floor * 1.15, "least squares", fontsize=9.5, va="bottom")
    above.set_ylabel("loss")
    above.legend()
    below.set_ylabel("difference\nfrom float64")
    below.set_xlabel("epoch")
    below.set_xlim(1, epochs[-1])
    below.set_xticks([1, *range(10, epochs[-1] + 1, 10)])
    for panel in (above, below):
        panel.set_yscale("log")
        panel.grid(axis="y", color=FAINT, linewidth=0.5)
    return figure

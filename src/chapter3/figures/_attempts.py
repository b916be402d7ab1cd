"""A figure of training that was killed and started again."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from chapter3.figures._style import GREEN, INK, SKY, VERMILION, WIDTH, on, styled


@styled
def draw_attempts(
    attempts: Mapping[str, Sequence[tuple[str, int]]], steps: int
) -> Figure:
    """Draw which steps each start of a program computed, saved, and restored.

    A blue box is a computed step, a green bar a checkpoint that is complete; a row
    begins with the bar of the checkpoint that it restored. A red cross ends the row of
    a start that did not come to the last step.

    Args:
        attempts: for each start, what it noted, in order: "restored", "computed" or
            "saved", with the number of the step.
        steps: the number of the last step.
    """
    figure = Figure(figsize=(WIDTH, 0.42 * len(attempts) + 0.75))
    panel = figure.subplots()
    for row, events in enumerate(attempts.values()):
        for did, step in events:
            if did == "computed":
                box = Rectangle((step - 1, row - 0.3), 1, 0.6, facecolor=SKY)
                box.set(edgecolor="#ffffff", linewidth=1.2)
                panel.add_patch(box)
                panel.text(
                    step - 0.56, row, str(step), ha="center", va="center",
                    fontsize=9, color=on(SKY),
                )  # fmt: skip
            else:
                panel.plot(
                    [step, step], [row - 0.42, row + 0.42],
                    color=GREEN, linewidth=4, solid_capstyle="butt", zorder=3,
                )  # fmt: skip
        reached = max((step for _, step in events), default=0)
        if reached < steps:
            panel.plot(
                reached + 0.35, row, "X",
                color=VERMILION, markersize=9, markeredgecolor=INK, zorder=4,
            )  # fmt: skip
    panel.set_xlim(0, steps + 0.5)
    panel.set_ylim(len(attempts) - 0.5, -0.5)
    panel.set_xticks(range(0, steps + 1, 3))
    panel.set_xlabel("steps of the training")
    panel.set_yticks(range(len(attempts)), list(attempts))
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    return figure

"""Figure of the types inside a shard_map: which values vary, and which are equal."""

from collections.abc import Callable

import jax
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from chapter3.figures._style import BLUE, INK, ORANGE, WIDTH, on, styled


@styled
def draw_types(mapped: Callable, *arguments: jax.Array) -> Figure:
    """Draw the operations inside a `shard_map`, each with the type of its result.

    The program is traced, not run. A value that varies over the mesh is drawn on
    orange, one that is equal on all devices on blue.

    Args:
        mapped: what `jax.shard_map` returns.
        *arguments: arrays as it takes them.
    """
    lines = traced_types(mapped, *arguments)
    figure = Figure(figsize=(WIDTH, 0.38 * len(lines) + 0.1))
    panel = figure.subplots()
    for line, (operation, kind) in enumerate(lines):
        colour = ORANGE if "{V:" in kind else BLUE
        panel.add_patch(
            FancyBboxPatch(
                (2.6, line - 0.3),
                3.3,
                0.6,
                boxstyle="round,pad=0.04",
                facecolor=colour,
                edgecolor=INK,
                linewidth=0.8,
            )
        )
        panel.text(2.4, line, operation, ha="right", va="center")
        panel.text(4.25, line, kind, ha="center", va="center", color=on(colour))
    panel.set_xlim(0, 6)
    panel.set_ylim(len(lines) - 0.5, -0.5)
    panel.axis("off")
    return figure


def traced_types(mapped: Callable, *arguments: jax.Array) -> list[tuple[str, str]]:
    """List the arguments and operations inside a `shard_map` with their types.

    Args:
        mapped: what `jax.shard_map` returns.
        *arguments: arrays as it takes them.

    Returns:
        Pairs of a name ("argument", or the primitive) and a type such as
        "float32[1]{V:i}".
    """
    outer = jax.make_jaxpr(mapped)(*arguments)
    (call,) = (e for e in outer.eqns if e.primitive.name == "shard_map")
    inner = call.params["jaxpr"]
    names = inner.debug_info.arg_names
    lines = [
        (f"argument {n}", str(v.aval)) for n, v in zip(names, inner.invars, strict=True)
    ]
    return lines + [
        (e.primitive.name, str(v.aval)) for e in inner.eqns for v in e.outvars
    ]

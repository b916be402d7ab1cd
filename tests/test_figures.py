import re

import jax
import jax.numpy as jnp
import matplotlib.colors
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, figures
from chapter3.figures._style import PALETTE, luminance, on
from chapter3.schedules import gpipe, interleaved, naive
from chapter3.timeline import Execution

WORDS = {"name": "fig-x", "alt": "A falling line.", "caption": "It falls."}


@pytest.fixture
def bubble():
    return figures.draw_bubble()


@pytest.mark.parametrize("missing", ["name", "alt", "caption"])
def test_words_cannot_be_left_out(bubble, missing):
    words = {k: v for k, v in WORDS.items() if k != missing}
    with pytest.raises(TypeError, match=missing):
        figures.show(bubble, **words)


@pytest.mark.parametrize(
    "bad", [{"alt": " "}, {"caption": ""}, {"alt": "It falls."}, {"name": "bubble"}]
)
def test_empty_words_are_refused(bubble, bad):
    with pytest.raises(ValueError, match="fig-"):
        figures.show(bubble, **(WORDS | bad))


def test_display_carries_the_words(bubble):
    data, metadata = figures.show(bubble, **WORDS, wide=True)._repr_mimebundle_()
    assert list(data) == ["image/svg+xml"] and data["image/svg+xml"].startswith("<svg")
    assert metadata["image/svg+xml"] == WORDS | {"classes": "wide"}


DRAWN = {
    "schedules": lambda: figures.draw_schedules([naive(4, 4), interleaved(4, 8)]),
    "bubble": figures.draw_bubble,
    "in_flight": figures.draw_in_flight,
    "attempts": lambda: figures.draw_attempts(
        {"first": [("computed", 1), ("saved", 1)], "second": [("restored", 1)]}, 2
    ),
    "memory": lambda: figures.draw_memory(7_500_000_000),
}


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_figure_is_the_same_file_small_and_with_real_text(name):
    first, second = (figures.show(DRAWN[name](), **WORDS).svg for _ in range(2))
    assert first == second
    assert len(first) < 120_000
    assert "<text" in first and "<image" not in first


@pytest.mark.parametrize("name", DRAWN)
def test_the_readers_settings_do_not_matter(name):
    plain = figures.show(DRAWN[name](), **WORDS).svg
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert figures.show(DRAWN[name](), **WORDS).svg == plain


def texts(figure):
    svg = figures.show(figure, **WORDS).svg
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def test_a_schedule_shows_all_its_work_and_its_bubble():
    schedule = gpipe(4, 8)
    shown = texts(figures.draw_schedules([schedule]))
    assert "GPipe, m = 8: idle 3/11 = 27 %" in shown
    (panel,) = figures.draw_schedules([schedule]).axes
    boxes = sorted(text.get_text() for text in panel.texts)
    # Forward and backward of each microbatch on each of four devices.
    assert boxes == sorted([str(i) for i in range(8)] * 2 * 4)
    assert len(panel.patches) == len(boxes) + 1  # and the idle time behind them


def test_memory_figure_prints_the_computed_totals():
    shown = texts(figures.draw_memory(7_500_000_000))
    for title in ("DP: 120.0", "ZeRO-1: 31.4", "ZeRO-2: 16.6", "ZeRO-3: 1.9"):
        assert f"{title} GB at N = 64" in shown


@pytest.mark.parametrize(
    "spec", [P("a"), P(None, "b"), P("a", "b"), P(), P(("a", "b"))]
)
def test_holding_says_where_the_data_is(spec):
    mesh = device_mesh({"a": 4, "b": 2})
    values = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    array = jax.device_put(values, NamedSharding(mesh, spec))
    held = figures.holding(array)
    assert held.shape == (8, 8) and sorted(held.blocks) == list(range(8))
    for shard in array.addressable_shards:
        np.testing.assert_array_equal(shard.data, values[held.blocks[shard.device.id]])


def test_holdings_are_drawn_where_they_are():
    mesh = device_mesh({"four": 4})
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("four")))
    figure = figures.draw_holdings({"data": {"x": figures.holding(x)}}, devices=4)
    for device, panel in enumerate(figure.axes):
        _, block = panel.patches
        assert block.get_height() == pytest.approx(0.25)
        assert block.get_y() == pytest.approx(0.75 - 0.25 * device)


def test_an_array_that_a_device_does_not_hold_is_an_empty_outline():
    alone = jax.device_put(jnp.ones((8, 8)), jax.devices()[0])
    figure = figures.draw_holdings({"one": {"x": figures.holding(alone)}}, devices=2)
    assert [len(panel.patches) for panel in figure.axes] == [2, 1]


@pytest.mark.parametrize("colour", PALETTE)
def test_numbers_can_be_read_on_every_colour(colour):
    light, dark = sorted((luminance(colour), luminance(on(colour))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2.2, level AA


def exchange():
    mesh = device_mesh({"i": 8})
    own = jax.device_put(
        jnp.arange(1.0, 9.0).reshape(8, 1), NamedSharding(mesh, P("i"))
    )
    f = jax.shard_map(
        lambda v: jax.lax.all_gather(v, "i", tiled=True),
        mesh=mesh,
        in_specs=P("i"),
        out_specs=P("i"),
    )
    return own, jax.jit(f)(own)


def test_an_exchange_shows_every_value_in_its_owners_colour():
    figure = figures.draw_exchange(*exchange())
    before, after = figure.axes
    assert [len(panel.patches) for panel in (before, after)] == [8, 64]
    assert before.get_title(loc="left") == "before: (1, 1)"
    assert after.get_title(loc="left") == "after: (8, 1)"
    shown = [text.get_text() for text in after.texts]
    assert shown == [str(k) for k in range(1, 9)] * 8
    colours = [matplotlib.colors.to_hex(p.get_facecolor()) for p in after.patches]
    assert colours == list(PALETTE) * 8


def test_a_new_value_is_drawn_on_white():
    own, _ = exchange()
    figure = figures.draw_exchange(own, own * 100)
    patches = figure.axes[1].patches
    assert {matplotlib.colors.to_hex(p.get_facecolor()) for p in patches} == {"#ffffff"}


def test_traced_types_tell_what_varies():
    mesh = device_mesh({"i": 8})
    f = jax.shard_map(
        lambda v: jax.lax.psum(2.0 * v, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()
    )
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("i")))
    lines = figures.traced_types(f, x)
    assert lines[0] == ("argument v", "float32[1]{V:i}")
    assert lines[-1] == ("psum_invariant", "float32[1]")
    assert len(texts(figures.draw_types(f, x))) == 2 * len(lines)


def test_sharding_names_every_holder_of_a_block():
    mesh = device_mesh({"a": 4, "b": 2})
    x = jnp.ones((8, 4))
    arrays = {
        str(spec): jax.device_put(x, NamedSharding(mesh, spec))
        for spec in (P(), P("a"), P(None, "b"), P("a", "b"))
    }
    panels = figures.draw_sharding(arrays, columns=2).axes
    shown = [[t.get_text() for t in panel.texts] for panel in panels]
    assert shown[0] == ["0–7"]
    assert shown[1] == ["0,1", "2,3", "4,5", "6,7"]
    assert sorted(shown[2]) == ["0,2\n4,6", "1,3\n5,7"]
    assert sorted(shown[3]) == [str(i) for i in range(8)]


def test_the_activity_is_what_the_log_says():
    log = np.array([[0, 1, -1], [-1, 0, 1]])
    (panel,) = figures.draw_activity(log).axes
    boxes = {(round(p.get_x()), round(p.get_y() + 0.46)) for p in panel.patches}
    assert boxes == {(0, 0), (1, 0), (1, 1), (2, 1)}


def test_what_does_not_fit_is_drawn_differently():
    figure = figures.draw_choice({"a": (90e9, 1.0), "b": (10e9, 2.0)}, capacity=80e9)
    too_large, fits = figure.axes[0].lines[1:]
    assert too_large.get_markerfacecolor() == "none"
    assert fits.get_markerfacecolor() != "none"


def test_the_timeline_draws_what_was_recorded():
    recorded = [
        Execution("jit_other", 1, 0, 0.0, 9.0),
        Execution("jit_forward", 2, 0, 1.0, 2.0),
        Execution("jit_forward", 3, 0, 2.0, 4.0),
        Execution("jit_forward", 4, 1, 3.0, 4.0),
        Execution("jit_backward", 5, 1, 4.0, 6.0),
    ]
    figure = figures.draw_timeline(recorded, "jit_forward", "jit_backward", 2)
    panel, count = figure.axes
    boxes = [(p.get_x(), p.get_width(), p.get_y() + 0.5) for p in panel.patches]
    assert boxes == [(0, 1000, 0), (1000, 2000, 0), (2000, 1000, 1), (3000, 2000, 1)]
    assert [text.get_text() for text in panel.texts] == ["0", "1", "0", "0"]
    outline = count.collections[0].get_paths()[0].vertices
    assert outline[:, 1].max() == 2  # from second 3 to 4 both were at work
    assert {x for x, y in outline if y == 2} == {2000, 3000}

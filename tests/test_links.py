"""The committed measurements of slow links, and the figures drawn from them."""

import json

import numpy as np
import pytest

from chapter3 import figures, links


def check(measured):
    """Times are the predicted ones wherever the wire takes most of the time.

    Below 5 ms the machine's own pace decides; above, headers make 7 % of difference,
    and pauses at the slowest speeds up to 30 %.
    """
    timings = measured.all_reduces()
    speeds = {t.megabits for t in timings}
    sizes = {t.nbytes for t in timings}
    assert len(timings) == len(speeds) * len(sizes) >= 25 and None in speeds
    for t in [*timings, *measured.steps()]:
        if t.predicted is not None and t.predicted > 5e-3:
            assert 0.9 < t.measured / t.predicted < 1.4, t
    assert 0 < measured.latency < 1e-3


def test_the_measurements_agree_with_the_prediction():
    check(links.Measurements.load())


def test_a_measurement_that_does_not_is_noticed(tmp_path):
    found = json.loads(links.FILE.read_text())
    found["links"][-1]["all-reduce"]["flat"][-1]["seconds"] *= 2
    file = tmp_path / "links.json"
    links.Measurements(found).save(file)
    with pytest.raises(AssertionError, match="Timing"):
        check(links.Measurements.load(file))


def test_they_show_what_crosses():
    ways = links.Measurements.load().ways()
    predicted = {"flat": 1.75, "mixed": 7.0, "hierarchical": 1.0}
    assert {way.name for way in ways} == set(predicted)
    for way in ways:
        assert 1.0 <= way.crossed / way.nbytes / predicted[way.name] < 1.2
    slowest_first = sorted(ways, key=lambda way: -way.measured)
    large = [way.name for way in slowest_first if way.nbytes == 2**20]
    assert large == ["mixed", "flat", "hierarchical"]


def test_they_say_where_they_come_from():
    first, second, third, *lines = links.Measurements.load().lines()
    assert "cores" in first and "JAX 0." in first and "-" in first
    assert second.startswith("load ") and third.startswith("alpha ")
    assert len(lines) >= 36


def test_a_prediction_is_alpha_twice_and_the_bytes_through_the_link():
    one = {"nbytes": 4, "seconds": 2e-4, "crossed": 0}
    train = {"nbytes": 1000, "collectives": 2, "compute": 0.01}
    train |= {"seconds": 0.02, "crossed": 0}
    measured = links.Measurements(
        {
            "links": [
                {"megabits": speed, "all-reduce": {"flat": [one]}, "training": train}
                for speed in (None, 8)
            ]
        }
    )
    assert measured.latency == 1e-4
    free, limited = measured.all_reduces()
    assert free.predicted is None
    assert limited.predicted == pytest.approx(2e-4 + 4e-6)  # 8 Mbit/s: 1 byte per us
    # Two all-reduces of 500 bytes each, and the computation.
    assert measured.steps()[1].predicted == pytest.approx(0.01 + 2 * 2e-4 + 1e-3)


def test_every_measurement_is_drawn():
    measured = links.Measurements.load()
    timings = measured.all_reduces()
    (panel,) = figures.draw_link_times(timings, measured.predict).axes
    marks = [line for line in panel.lines if line.get_linestyle() == "None"]
    drawn = sorted(float(y) for line in marks for y in line.get_ydata())
    assert drawn == sorted(1e3 * t.measured for t in timings)
    predicted = [line for line in panel.lines if line.get_linestyle() != "None"]
    assert len(predicted) == len(marks) - 1  # none without a limit
    ends = {(x, y) for line in predicted for x, y in line.get_xydata()[[0, -1]]}
    for t in timings:
        if t.predicted and t.nbytes in (4, 2**22):
            assert any(np.allclose(e, (t.nbytes, 1e3 * t.predicted)) for e in ends)
    assert next(text.get_text() for text in panel.texts) == "no limit"


def test_steps_are_drawn_from_slow_to_fast():
    measured = links.Measurements.load()
    (panel,) = figures.draw_link_steps(
        measured.steps(), measured.compute, measured.predict_step
    ).axes
    _, predicted, marks = panel.lines
    speeds = [t.megabits for t in measured.steps() if t.megabits]
    assert list(marks.get_xdata()) == sorted(speeds)
    line = dict(zip(*predicted.get_data(), strict=True))
    slow, fast = (
        next(t for t in measured.steps() if t.megabits == m) for m in (10, 1000)
    )
    assert min(line) == pytest.approx(10) and max(line) == pytest.approx(1000)
    assert max(line.values()) == pytest.approx(1e3 * slow.predicted)
    assert min(line.values()) == pytest.approx(1e3 * fast.predicted)


def test_what_crosses_is_hatched():
    pairs = np.roll(np.eye(4), 1, axis=1)
    first, second = figures.draw_pairs(
        {"two hosts": pairs, "swapped": pairs.T}, [0, 0, 1, 1]
    ).axes
    for panel in (first, second):
        hatched = [bool(patch.get_hatch()) for patch in panel.patches]
        assert len(hatched) == 4 and sum(hatched) == 2
    # From 1 to 2: in row 1, column 2.
    assert first.patches[1].get_xy() == (2, 1) and first.patches[1].get_hatch()

"""What a slow link between two hosts costs: measured, and predicted.

The measurements are data of this package, taken by `examples/hosts/link_speed.py`.
The prediction is that of `chapter3.traffic.seconds` with two numbers: the speed to
which the link was limited, and the time to start a message, half of what the smallest
all-reduce took without a limit.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chapter3 import traffic

FILE = Path(__file__).with_name("links.json")


@dataclass(frozen=True)
class Timing:
    """One measurement beside its prediction.

    Attributes:
        megabits: speed of the link in megabits per second; None without a limit.
        nbytes: bytes that each device holds and sums.
        measured: seconds, the median of several.
        predicted: seconds; None without a limit, whose bandwidth nobody set.
        crossed: bytes that a host sent over the link, headers included.
    """

    megabits: float | None
    nbytes: int
    measured: float
    predicted: float | None
    crossed: int


@dataclass(frozen=True)
class Way:
    """One way to sum over two hosts of several devices.

    Attributes:
        name: "flat", "mixed" or "hierarchical".
        nbytes: bytes that each device holds and sums.
        measured: seconds, the median of several.
        crossed: bytes that one host sent over the link in one sum, headers included.
    """

    name: str
    nbytes: int
    measured: float
    crossed: int


@dataclass(frozen=True)
class Measurements:
    """Measurements as `examples/hosts/link_speed.py` takes them.

    Attributes:
        found: the content of the file.
    """

    found: dict

    @classmethod
    def load(cls, file: Path | None = None) -> "Measurements":
        """Read measurements, by default those of the package."""
        return cls(json.loads((file or FILE).read_text()))

    def save(self, file: Path) -> None:
        """Write the measurements to a file."""
        file.write_text(json.dumps(self.found, indent=1) + "\n")

    @property
    def latency(self) -> float:
        """Time to start a message (alpha), in seconds."""
        free = next(link for link in self.found["links"] if link["megabits"] is None)
        smallest = min(free["all-reduce"]["flat"], key=lambda m: m["nbytes"])
        return smallest["seconds"] / traffic.ring_steps("all-reduce", 2)

    def all_reduces(self) -> list[Timing]:
        """All-reduces over two hosts of one device."""
        return [
            Timing(
                link["megabits"],
                one["nbytes"],
                one["seconds"],
                link["megabits"] and self.predict(link["megabits"], one["nbytes"]),
                one["crossed"],
            )
            for link in self.found["links"]
            for one in link["all-reduce"]["flat"]
        ]

    def steps(self) -> list[Timing]:
        """Training steps over two hosts of one device; `nbytes` is of the gradients."""
        result = []
        for link in self.found["links"]:
            step = link["training"]
            predicted = link["megabits"] and self.predict_step(link["megabits"])
            timing = step["nbytes"], step["seconds"], predicted, step["crossed"]
            result.append(Timing(link["megabits"], *timing))
        return result

    def predict(self, megabits: float, nbytes: float) -> float:
        """Predict an all-reduce of `nbytes` over the two hosts, in seconds."""
        return traffic.seconds(
            "all-reduce",
            nbytes,
            2,
            latency=self.latency,
            bandwidth=megabits * 1e6 / 8,
        )

    def predict_step(self, megabits: float) -> float:
        """Predict a training step: computing, then its all-reduces; in seconds."""
        step = self.found["links"][0]["training"]  # the same over all links
        times = step["collectives"]
        return self.compute + times * self.predict(megabits, step["nbytes"] / times)

    @property
    def compute(self) -> float:
        """Seconds of a training step without communication, the median of all links."""
        times = sorted(link["training"]["compute"] for link in self.found["links"])
        return times[len(times) // 2]

    def ways(self) -> list[Way]:
        """Sums over two hosts of four devices at 100 Mbit/s."""
        return [
            Way(name, one["nbytes"], one["seconds"], one["crossed"])
            for name, sums in self.found["ways"]["all-reduce"].items()
            for one in sums
        ]

    def lines(self) -> Iterator[str]:
        """Print the measurements as lines of text."""
        yield f"{self.found['machine']}, JAX {self.found['jax']}, {self.found['date']}"
        load = f"load {self.found['load before']:.1f} to {self.found['load after']:.1f}"
        yield load + (", at real-time priority" if self.found["real time"] else "")
        yield f"alpha {1e6 * self.latency:.0f} us, compute {1e3 * self.compute:.1f} ms"
        for name, timings in (
            ("all-reduce", self.all_reduces()),
            ("step", self.steps()),
        ):
            for t in timings:
                ratio = t.predicted and f"{t.measured / t.predicted:5.2f} of predicted"
                yield (
                    f"{name:10} {t.megabits or 'free':>5} Mbit/s {t.nbytes:8} B "
                    f"{1e3 * t.measured:9.3f} ms {ratio or ''}"
                )
        for way in self.ways():
            yield (
                f"{way.name:12} {way.nbytes:8} B {1e3 * way.measured:9.3f} ms, "
                f"crossed {way.crossed} = {way.crossed / way.nbytes:.2f} S"
            )

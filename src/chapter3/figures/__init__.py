"""Figures of the chapter, each drawn from computed data."""

from chapter3.figures._attempts import draw_attempts
from chapter3.figures._exchange import draw_exchange
from chapter3.figures._holdings import Holding, draw_holdings, holding
from chapter3.figures._ledger import draw_activity, draw_choice, draw_ledger
from chapter3.figures._links import draw_link_steps, draw_link_times, draw_pairs
from chapter3.figures._loading import Loaded, draw_loading
from chapter3.figures._memory import draw_memory
from chapter3.figures._schedules import (
    draw_bubble,
    draw_in_flight,
    draw_schedules,
    draw_timeline,
)
from chapter3.figures._sharding import draw_sharding
from chapter3.figures._show import ShownFigure, show
from chapter3.figures._training import draw_training
from chapter3.figures._types import draw_types, traced_types

__all__ = [
    "Holding",
    "Loaded",
    "ShownFigure",
    "draw_activity",
    "draw_attempts",
    "draw_bubble",
    "draw_choice",
    "draw_exchange",
    "draw_holdings",
    "draw_in_flight",
    "draw_ledger",
    "draw_link_steps",
    "draw_link_times",
    "draw_loading",
    "draw_memory",
    "draw_pairs",
    "draw_schedules",
    "draw_sharding",
    "draw_timeline",
    "draw_training",
    "draw_types",
    "holding",
    "show",
    "traced_types",
]

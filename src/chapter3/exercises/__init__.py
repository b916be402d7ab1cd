"""The exercises of the chapter: a self-check for each, and reference answers.

One module per exercise; `check(answer)` of each returns a `Verdict`.
"""

from chapter3.exercises.verdict import NotAnsweredError, Verdict

__all__ = ["NotAnsweredError", "Verdict"]

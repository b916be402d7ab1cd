"""The run-time type checker of the tests: an int is a float, as in static typing."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

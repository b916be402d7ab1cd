"""Play sessions in each of two processes; `note.py` launches this."""

import json
import sys

from chapter3.launcher import join, report
from chapter3.transcript import play

if __name__ == "__main__":
    join()
    report([play(sources) for sources in json.loads(sys.argv[1])])

"""The client's own chance: a program, and its tests, draw from `random` what they would without a client."""

import os
from random import Random
from typing import Final

DICE: Final = Random()
"""For any thread. Forked children throw their own: they must not all come back at one moment."""
os.register_at_fork(after_in_child=DICE.seed)

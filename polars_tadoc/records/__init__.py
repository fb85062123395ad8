"""Records that are more than memory holds: sorted runs on disk, merged in ranges of keys.

Records gather in memory, merged, until they fill their share; then they become a run: a file of packed keys and counts
in key order and a file of their words. In the end the words of all runs are merged into one numbering, which rises with
each run's own, so that runs stay sorted; then stretches of all runs between two keys are read and merged at a time.
"""

from polars_tadoc.records.checkpoint import Checkpoint as Checkpoint
from polars_tadoc.records.spill import Spill as Spill
from polars_tadoc.records.spill_folder import SpillFolder as SpillFolder

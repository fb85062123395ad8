"""Records that exceed memory: sorted runs on disk, merged by ranges of keys.

Records are merged in memory until they fill their share. Then they become a run: a file of packed keys and counts in
key order, and a file of their words. At the end, the words of all runs are merged into one numbering. It is monotonic
in each run's own numbers, so runs stay sorted. Then ranges of keys are read from all runs and merged.
"""

from polars_tadoc.records.checkpoint import Checkpoint as Checkpoint
from polars_tadoc.records.spill import Spill as Spill
from polars_tadoc.records.spill_folder import SpillFolder as SpillFolder

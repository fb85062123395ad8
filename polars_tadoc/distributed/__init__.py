"""Work of one call spread over several processes: of this machine's GPUs and cores, or of a cluster's."""

from polars_tadoc.distributed.workers import Workers

__all__ = ["Workers"]

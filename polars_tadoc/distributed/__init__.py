"""Runs one call on several processes: on this machine's GPUs and cores, or on a cluster."""

from polars_tadoc.distributed.workers import Workers

__all__ = ["Workers"]

"""Folders of partitions, ``key=value/``, as Hive, Polars, DuckDB and PyArrow name them."""

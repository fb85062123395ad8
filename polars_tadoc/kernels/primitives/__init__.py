"""Primitives that other kernels are built on: scans, sorts, bitmaps, copies."""

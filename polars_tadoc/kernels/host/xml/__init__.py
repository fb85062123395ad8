"""Kernels: xml."""

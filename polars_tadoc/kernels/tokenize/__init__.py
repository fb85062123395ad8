"""Kernels that tokenize text and intern its words."""

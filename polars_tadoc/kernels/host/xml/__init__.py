"""Kernels on XML documents: parsing with Expat."""

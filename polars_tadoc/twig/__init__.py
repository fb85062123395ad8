"""Twig patterns: XPath queries, sets of them, and their application to XML documents."""

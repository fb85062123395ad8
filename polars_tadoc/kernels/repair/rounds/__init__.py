"""Rounds of batch RePair on the CPU, in machine code that threads share."""

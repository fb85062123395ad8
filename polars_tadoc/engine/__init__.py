"""The engines, CPU and GPU, and the choice between them, made once per call."""

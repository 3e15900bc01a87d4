"""The rules: pure functions, no clock, no I/O."""

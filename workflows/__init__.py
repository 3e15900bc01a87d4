"""Deterministic orchestration; imports contracts, core, stubs and nothing else of ours."""

"""Fakes that keep the contracts, and conformance suites, also for the tests of other projects."""

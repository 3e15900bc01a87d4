"""Walks along JSON Schemas and the values that they describe, for registry, calls and runtimes.

`toolagent.validation` checks documents against schemas.
"""

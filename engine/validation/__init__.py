"""Walks along JSON Schemas, for registry and calls.

`toolagent.validation` checks documents against schemas.
"""

"""Sandbox levels: namespaces (`bubblewrap`), or limits only (`rlimits`).

The third, containers, is in `docker`.
"""

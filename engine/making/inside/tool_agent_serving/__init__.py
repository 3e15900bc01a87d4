"""Serves the apps of repositories in the sandbox.

Runs on the project's own Python (3.8 or newer). Written by Tool Agent.
"""

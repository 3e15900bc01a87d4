"""Environments of scripts and projects: what they depend on, installed once in the sandbox."""

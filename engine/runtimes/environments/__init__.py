"""Environments: the dependencies of scripts and projects, installed once in the sandbox."""

"""Inputs and outputs of the service's steps: pydantic models only.

They are in the histories of workflows.
"""

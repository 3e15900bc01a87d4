"""The tools of a service as the objects of agents' frameworks.

Each module needs the extra of its name.
"""

"""Containers that serve tools or build them, on the Docker engine of this machine."""

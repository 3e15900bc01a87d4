"""The Docker engine of this machine: its API, its limits, whose its containers and images are."""

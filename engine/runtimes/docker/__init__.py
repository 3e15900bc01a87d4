"""Tools in containers, and containers to build tools in, on a Docker engine of this machine."""

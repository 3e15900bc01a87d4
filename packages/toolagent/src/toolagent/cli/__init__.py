"""The command line `toolagent`, over HTTP."""

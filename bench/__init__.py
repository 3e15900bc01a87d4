"""How fast, how large and how hard to kill: measured beside peers in one run; see README.md."""

"""Exits before it serves."""

import sys

sys.stderr.write("the model file is missing\n")
sys.exit(7)

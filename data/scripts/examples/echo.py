"""Answers with the message it is given (seed 004 §2.2.3)."""

import json
import sys

data = json.load(sys.stdin)
json.dump({"received_message": data.get("message")}, sys.stdout)

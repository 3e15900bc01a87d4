"""Answers with the message it is given."""

import json
import sys

data = json.load(sys.stdin)
json.dump({"received_message": data.get("message")}, sys.stdout)

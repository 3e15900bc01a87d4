"""Making a call: the attempt with its mark, the exchange with the tool, the call that is made at once."""

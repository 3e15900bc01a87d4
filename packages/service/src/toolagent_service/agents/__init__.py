"""The rules of durable agents: their loop, what a model is told, what it costs."""

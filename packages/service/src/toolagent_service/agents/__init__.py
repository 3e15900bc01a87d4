"""Rules of durable agents: their loop, texts for their model, costs."""

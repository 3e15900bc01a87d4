"""Cloud servers with ComfyUI, rented from RunComfy: a client of its server API, one of ComfyUI, and the tools over both."""

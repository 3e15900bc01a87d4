"""The ways to keep a program apart: by namespaces, or by limits alone. The third, a container, is in `docker`."""

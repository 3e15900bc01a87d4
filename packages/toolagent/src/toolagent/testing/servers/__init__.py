"""Test servers for other services: real HTTP, real protocols, scripted answers."""

"""Keeps programs apart from the machine, from us and from one another."""

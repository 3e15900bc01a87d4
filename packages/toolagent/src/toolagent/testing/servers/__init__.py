"""Servers that stand in for others: real HTTP, real protocols, answers by scenario."""

"""The objective of a search for agents: train with a program, and measure what the task measures."""

"""The built-in genetic proposer: programs from the vocabulary of a task, without a network."""

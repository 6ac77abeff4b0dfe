"""Programs on text: rewards of states that are no arrays, such as the view hierarchy of a screen.

    source -> guard -> worker (locked down, without JAX; executes the program on every transition) -> rewards -> Program

Such a program never runs anywhere else, so it trains no agent: it is known by its rewards on given data.
"""

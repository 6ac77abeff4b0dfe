"""Small games: Flappy Bird, and Tetris and Snake on jumanji's environments."""

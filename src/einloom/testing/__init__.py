"""Public kits for tests: random problems and mapping trees, what is true of each problem, and of every search method."""

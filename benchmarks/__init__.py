"""How fast calibrant is beside other packages and beside what no code can beat."""

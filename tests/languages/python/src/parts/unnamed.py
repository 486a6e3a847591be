NAME = "unnamed"

def fail():
    raise ValueError("out of cheese")

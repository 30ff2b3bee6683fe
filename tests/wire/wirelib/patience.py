"""How many times longer than usual a test waits for what must come; valgrind needs some."""
factor = 1


def of(seconds):
    return seconds * factor

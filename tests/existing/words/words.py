import wit_world
from componentize_py_types import Err


class WitWorld(wit_world.WitWorld):
    def count(self, text):
        return wit_world.Count(len(text.split()), len(text))

    def shout(self, text):
        if not text:
            raise Err("there is no text")
        return text.upper()

    def sorted(self, text, by):
        def place(word):
            if isinstance(by, wit_world.Order_Nearest):
                return abs(len(word) - by.value)
            return len(word) if isinstance(by, wit_world.Order_Shortest) else -len(word)

        return sorted(text.split(), key=place)

    def longest(self, text):
        return max(map(len, text.split()), default=None)

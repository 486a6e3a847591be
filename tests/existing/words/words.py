import wit_world
from componentize_py_types import Err


class WitWorld(wit_world.WitWorld):
    def count(self, text):
        return wit_world.Count(len(text.split()), len(text))

    def shout(self, text):
        if not text:
            raise Err("there is no text")
        return text.upper()

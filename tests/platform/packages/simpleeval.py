import os

import simpleeval


def work():
    yield simpleeval.simple_eval("2 ** 10 + most(1, 3) / n", functions={"most": max}, names={"n": 4})
    for text in ("__import__('os')", "1 +", "9 ** 9 ** 9", "run('')"):
        try:
            yield simpleeval.simple_eval(text, functions={"run": os.system} if "run" in text else None)
        except Exception as error:
            yield type(error).__name__

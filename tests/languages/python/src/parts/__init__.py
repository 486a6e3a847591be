def whole():
    from . import late
    from .deeper import below

    return [late.NAME, below.above()]

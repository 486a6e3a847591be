def above():
    from .. import top

    return top.NAME

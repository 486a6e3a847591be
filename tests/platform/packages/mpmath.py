from mpmath import diff, findroot, gamma, hyp2f1, identify, limit, matrix, mp, mpf, nsum, pi, polyroots, quad, sin, sqrt, zeta


def work():
    mp.dps = 40
    yield str(pi), str(sqrt(mpf(2))), str(zeta(3)), str(gamma(mpf("0.3")))
    yield str(quad(lambda x: sin(x) ** 2, [0, pi])), str(nsum(lambda n: 1 / n**2, [1, mp.inf]))
    yield str(findroot(lambda x: x**3 - 2, 1)), str(diff(lambda x: x**5, 2)), str(limit(lambda n: (1 + 1 / n) ** n, mp.inf))
    yield [str(root) for root in polyroots([1, -6, 11, -6])], str(hyp2f1(1, 2, 3, mpf("0.5")))
    yield str(matrix([[1, 2], [3, 4]]) ** -1), mp.identify(sqrt(mpf(2)) / 2, ["sqrt(2)"])
    mp.dps = 15

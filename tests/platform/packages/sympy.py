import sympy
from sympy import Eq, Matrix, cos, diff, exp, factor, integrate, latex, limit, oo, series, simplify, sin, solve, sqrt, symbols


def work():
    x, y = symbols("x y")
    yield str(integrate(exp(-x) * sin(x), x)), str(integrate(exp(-x**2), (x, -oo, oo)))
    yield str(diff(sin(x) * exp(x**2), x)), str(factor(x**4 - 5 * x**2 + 4)), str(simplify(sin(x) ** 2 + cos(x) ** 2))
    yield str(solve([Eq(x + y, 5), Eq(x * y, 6)], [x, y])), str(solve(x**3 - 2, x)), str(limit(sin(x) / x, x, 0))
    yield str(series(cos(x), x, 0, 8)), latex(sqrt(x) / (1 + y**2)), str(sympy.dsolve(sympy.Function("f")(x).diff(x) - x))
    yield str(Matrix([[2, 1], [1, 2]]).eigenvals()), str(sympy.factorint(2**64 - 1)), str(sympy.sympify("2*x + 3*x"))
    yield sympy.pretty(sqrt(x) / y, use_unicode=True), str(sympy.nsimplify(0.333333333333333, rational=True)), str(sympy.pi.evalf(30))

"""kjit.numpy.grad and kjit.numpy.value_and_grad: derivatives of programs over whole arrays. kjit.grad
and kjit.value_and_grad also accept such programs."""

import functools

from .. import _programs


def value_and_grad(function, *numbers):
    """Returns a function that computes (value, derivative with respect to each chosen argument) of a program
    over whole arrays.

        value, dx = kjit.numpy.value_and_grad(lambda x: knp.sum(knp.exp(-x * x)))(x)

    The program uses operators, functions of kjit.numpy or NumPy, and kjit's algorithms, and returns
    one number. numbers: the positions of the chosen arguments; without them all arguments that hold
    floats are chosen. Each derivative has its argument's shape.

    For functions of one element, or with loops over elements, use kjit.value_and_grad. The returned
    function raises TypeError for an operation without a derivative, and if the result is not one
    number.
    """

    @functools.wraps(function)
    def derivative(*args):
        return _programs.value_and_grad(function, numbers, args)

    return derivative


def grad(function, *numbers):
    """Returns a function that computes the derivatives of a program over whole arrays: one
    derivative, or a tuple for several chosen arguments. See kjit.numpy.value_and_grad."""

    @functools.wraps(function)
    def derivative(*args):
        return _programs.grad(function, numbers, args)

    return derivative

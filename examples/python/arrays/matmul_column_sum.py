"""A product of matrices, and the sum of each column of the result."""
import numpy


def run(xp):
    generator = numpy.random.default_rng(5)
    a, b = xp.asarray(generator.random((200, 150))), xp.asarray(generator.random((150, 120)))
    c = a @ b
    columns = xp.sum(c, axis=0)
    return c, columns, xp.max(columns)


if __name__ == "__main__":
    from both import compare

    compare(run, "matmul: the largest sum of a column is {:.1f}")

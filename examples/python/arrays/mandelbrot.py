"""The Mandelbrot set: the number of iterations of z * z + c until |z| > 2."""


def run(xp, width=120, height=80, steps=40):
    x = xp.linspace(-2.2, 0.8, width)[None, :]
    y = xp.linspace(-1.2, 1.2, height)[:, None]
    real, imag = 0 * (x + y), 0 * (x + y)
    counts = xp.zeros((height, width))
    for _ in range(steps):
        real, imag = real * real - imag * imag + x, 2 * real * imag + y
        inside = real * real + imag * imag <= 4
        real, imag = xp.where(inside, real, 2.0), xp.where(inside, imag, 2.0)
        counts += xp.where(inside, 1.0, 0.0)
    return counts, xp.sum(counts == steps)


if __name__ == "__main__":
    from both import compare

    compare(run, "Mandelbrot: {} points are inside")

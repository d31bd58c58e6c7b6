"""is_picture.py FILE WIDTH HEIGHT: whether a .ppm file holds a picture of that size with more than one colour."""
import sys

path, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, "rb") as file:
    magic, size, most, pixels = file.read().split(b"\n", 3)
assert magic == b"P6" and most == b"255", (magic, most)
assert size.split() == [str(width).encode(), str(height).encode()], size
assert len(pixels) == 3 * width * height, len(pixels)
assert len(set(pixels[k:k + 3] for k in range(0, len(pixels), 3))) > 10

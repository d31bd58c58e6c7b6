"""Changes one byte in the middle of one entry of a cache directory."""
import glob
import sys

path = sorted(glob.glob(sys.argv[1] + "/*.kjit"))[0]
with open(path, "r+b") as file:
    data = bytearray(file.read())
    data[len(data) // 2] ^= 1
    file.seek(0)
    file.write(data)

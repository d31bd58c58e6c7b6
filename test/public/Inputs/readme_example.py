"""readme_example.py README FOLDER: writes the README's C programs (host0.c and host1.c), its C++ program (host.cpp) and
its kernel IR files to the folder, and prints its command lines."""
import os
import re
import sys

readme, folder = sys.argv[1:]
blocks = re.findall(r"^```(\w*)\n(.*?)^```", open(readme).read(), re.MULTILINE | re.DOTALL)
for number, program in enumerate(text for language, text in blocks if language == "c"):
    open(os.path.join(folder, f"host{number}.c"), "w").write(program)
for text in (text for language, text in blocks if language == "cpp"):
    open(os.path.join(folder, "host.cpp"), "w").write(text)
for _, text in blocks:
    kernel = re.match(r"# (\w+\.kir):", text)
    if kernel:
        open(os.path.join(folder, kernel[1]), "w").write(text)
    if text.startswith("kjit-run"):
        print(text, end="")

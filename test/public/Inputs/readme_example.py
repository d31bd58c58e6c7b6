"""readme_example.py README C KIR: writes the README's C program and its kernel, and prints its command line."""
import sys

readme, program, kernel = sys.argv[1:]
text = open(readme).read()
open(program, "w").write(text.split("```c\n")[1].split("```")[0])
open(kernel, "w").write("# axpy.kir" + text.split("```\n# axpy.kir")[1].split("```")[0])
print("kjit-run" + text.split("\nkjit-run", 1)[1].split("\n```")[0])

"""large_functions.py FORM N: prints a kernel with N branches in a loop, a chain of N values, N uses of a constant, N
functions of complex numbers, or N copies of a store."""
import sys

form, count = sys.argv[1], int(sys.argv[2])
print("kernel k(r, x) {\n  for q in grid_range(len(r)) {\n    var a = x[q]")
for k in range(count):
    if form == "branches":
        print(f"    if a > {k} {{ a = a * x[q + {k}] + r[q] }} else {{ a = a + {k} }}")
    elif form == "uses":
        print(f"    a = a * 1.5 + {f'x[{k}]' if k % 64 == 0 else 'a'}")
    elif form == "complex":
        print("    a = asinh(a)")
    elif form == "chain":
        print(f"    let v{k} = {f'v{k - 1}' if k else 'a'} * {k % 7}.5 + (a - {k % 11}.25)")
if form == "copies":
    print(f"    for j in range({count}) @unroll {{ r[q + j] = a + j }}")
print(f"    r[q] = {f'v{count - 1}' if form == 'chain' else 'a'}\n  }}\n}}")

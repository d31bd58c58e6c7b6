"""The simulator: runs kernels of kjit.cuda in the Python interpreter, so that print, pdb and a
debugger can be used inside kernels.

`rewriting` rewrites the syntax tree of a kernel for the interpreter: operators become functions of
`arithmetic`, which follow Numba's type rules, and names such as cuda.grid become functions of
`words` and `together`. `threads` runs the threads in a grid in turn in one thread of the operating
system. A dispatcher calls `launching`.
"""

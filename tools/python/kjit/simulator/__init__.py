"""The simulator: kernels of kjit.cuda run in the interpreter, so that print, pdb and an IDE's debugger stop in their lines.

`rewriting` rewrites the syntax tree of a kernel, so that the interpreter can run it. Operators become functions of `arithmetic`, which
follow Numba's rules for types. Words such as cuda.grid become functions of `words` and `together`. `threads` runs the threads of a
grid in turn, all in one thread of the operating system. A dispatcher calls `launching`."""

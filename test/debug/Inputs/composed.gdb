set breakpoint pending on
set pagination off
set debuginfod enabled off
break kernels.kir:39
run
print b
print v
print z

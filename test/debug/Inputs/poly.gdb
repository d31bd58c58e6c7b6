set breakpoint pending on
set pagination off
set debuginfod enabled off
break kernels.kir:15
run
info locals
print r.shape
print x.data[0]@4
step
next
info locals
backtrace 2

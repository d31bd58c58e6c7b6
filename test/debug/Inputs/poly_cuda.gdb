set breakpoint pending on
set pagination off
break kernels.kir:15
run
info locals

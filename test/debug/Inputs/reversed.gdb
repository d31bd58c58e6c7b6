set breakpoint pending on
set pagination off
set debuginfod enabled off
break kernels.kir:27
run
condition 1 t == 5
continue
print threadIdx.x
print t
print mine
next
print other
print s[63]

set breakpoint pending on
set pagination off
set debuginfod enabled off
break other.py:2
break prog.py:4
run
continue

#!/bin/sh
# run_outside.sh KJIT-RUN OUTSIDE.kir CODE: all kernels of outside.kir with the code in one form. What they print is the same for all.
# CHECK: out: f32[10] = [1 16 31 46 61 76 91 106 121 136]
# CHECK: w: f32[64] = [0 125 123 0 119 117 0 113 111 0
# CHECK: p: i16[5] = [-6 -5 -4 1 2]
# CHECK: m: f64[4, 4] =
# CHECK-NEXT: {{.*}}0 0 0 0]
# CHECK-NEXT: {{.*}}0 0 1 0]
# CHECK-NEXT: {{.*}}2 0 0 0]
# CHECK-NEXT: {{.*}}0 0 3 0]
# CHECK: mt: f64[4, 4] =
# CHECK-NEXT: {{.*}}0 0 2 0]
# CHECK-NEXT: {{.*}}0 0 0 0]
# CHECK-NEXT: {{.*}}0 1 0 3]
# CHECK-NEXT: {{.*}}0 0 0 0]
exec $1 "$2" --extern scale="$3" --extern pick="$3" --extern window="$3" --extern put="$3" \
  --arg out=zeros:f32[10] --arg x=arange:f32[10] --arg w=zeros:f32[64] --arg y=arange:f32[64] \
  --arg p=zeros:i16[5] --arg a='arange:i8[5]:start=-2' --arg b=arange:u16[5]:start=65530 --arg m=zeros:f64[4,4] --arg mt=zeros:f64[4,4] \
  --launch 'scaled(out, x)' --launch 'windows(w, y)' --launch 'picked(p, a, b)' --launch 'puts(m, 4)' --launch 'transposed(mt, 4)' \
  --print out --print w --print p --print m --print mt

#!/bin/sh
# make_functions.sh KJIT-COMPILE LIBRARY.kir FOLDER OPTIONS ENDING: every function of the library that a C program can call.
set -eu
compile() { "$kjit_compile" "$library" --func "$1" -s "$2" --symbol "k_$3" $options -o "$folder/$3.$ending"; }
kjit_compile=$1 library=$2 folder=$3 options=$4 ending=$5
compile hypot2 'f32, f32' hypot2
compile small 'i8, u16, bool' small
compile total 'const f32[:] C' total
compile fill 'f32[:, :], f32' fill
compile fib i32 fib
compile even i32 even
compile root f64 root
compile times 'i32, 7' times7

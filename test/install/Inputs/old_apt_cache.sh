#!/bin/sh
# Stands for apt-cache of a release that has everything except LLVM 22.
case $2 in *-22*) exit 100 ;; esac

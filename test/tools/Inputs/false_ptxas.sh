#!/bin/sh
echo "ptxas fatal: this is a test" >&2
exit 3

#!/bin/sh
# hostile_libraries.sh CC FOLDER NAME...: libraries of these names in FOLDER, each of which ends the process with a message as soon as it is loaded.
set -eu
cc=$1 folder=$2
shift 2
mkdir -p "$folder"
cat > "$folder/here.c" << 'CODE'
#include <unistd.h>
__attribute__((constructor)) static void run(void)
{
  static const char text[] = "code of the current directory runs\n";
  _exit(write(2, text, sizeof text - 1) ? 77 : 78);
}
CODE
"$cc" -shared -fPIC "$folder/here.c" -o "$folder/here.so"
for name in "$@"; do
  mkdir -p "$folder/$(dirname "$name")"
  cp "$folder/here.so" "$folder/$name"
done

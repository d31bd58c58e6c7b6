# old_glibc.sh SOURCE FOLDER: makes old_glibc.cpp into FOLDER/plain, and linked as CMake's kj_run_on_old_glibc does it into FOLDER/wrapped.
set -eu
source=$1 folder=$2
wrapped=$(sed -nE 's/^RE[A-Z]+\(([A-Za-z0-9_]+).*/-Wl,--wrap=\1/p' "$source"/lib/old_glibc/*.def)
for file in renamed replaced start; do
  gcc -D_GNU_SOURCE -O2 -fPIC -ffunction-sections -fdata-sections -I"$source/lib" -c "$source/lib/old_glibc/$file.c" -o "$folder/$file.o"
done
g++ -D_GNU_SOURCE -O2 "$source/test/install/Inputs/old_glibc.cpp" -static-libstdc++ -static-libgcc -o "$folder/plain"
g++ -D_GNU_SOURCE -O2 "$source/test/install/Inputs/old_glibc.cpp" "$folder"/*.o -static-libstdc++ -static-libgcc $wrapped -Wl,--wrap=__libc_start_main -Wl,--gc-sections \
  -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -lm -o "$folder/wrapped"

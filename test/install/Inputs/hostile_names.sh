# hostile_names.sh FOLDER: names of libraries that code of kjit needs, and those of the files in FOLDER as they stand there and below the folders lib and kjit-*.
cd "$1"
echo libcuda.so.1 libm.so.6 libmvec.so.1 libz.so.1 libzstd.so.1 libgomp.so.1 libpng16.so.16 libpthread.so.0 libdl.so.2
find . -type f \( -name '*.so*' -o -perm -u+x \) -printf '%P\nlib/%P\n'

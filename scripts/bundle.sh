#!/usr/bin/env bash
# Makes one folder and tarball with tools, libraries and all tests for a machine without LLVM, compilers or network: a GPU machine, say. It needs glibc 2.27 and python3
# there (with numpy for the tests that use it; they are skipped without).
#   scripts/bundle.sh [FOLDER]      default: bundle, giving bundle/kjit/ and bundle/kjit.tar.xz
# There: tar xf kjit.tar.xz && kjit/run-tests.sh [lit arguments]
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-bundle}" build
out=$(cd "${1:-bundle}" && pwd)
tree=$out/kjit
limit_mib=64

cached() { sed -n "s/^$1:[^=]*=//p" build/bundle/CMakeCache.txt; }

echo "bundle: building"
cmake --preset bundle > build/bundle.log 2>&1 || { cat build/bundle.log >&2; exit 1; }
cmake --build build/bundle -j "$(nproc)"

echo "bundle: collecting"
rm -rf "$tree" "$out/kjit.tar.xz"
cmake --install build/bundle --prefix "$tree" --strip > build/bundle.log
(cd "$tree/lib" && ln -s libkjit-compiler.so.* libkjit-compiler.so) # tests open it by this name, as in a build tree
mkdir -p "$tree/checks/lib" "$tree/programs" "$tree/built"
ln -s ../lib "$tree/built/lib" # where the run paths of the built tests point
for folder in test/unit test/fuzz test/run test/accuracy examples; do
  [ -d "build/bundle/$folder" ] || continue
  mkdir -p "$tree/built/$folder"
  find "build/bundle/$folder" -maxdepth 1 -type f -perm -u+x -exec cp -t "$tree/built/$folder" {} +
  find "$tree/built/$folder" -type f -exec strip {} +
done
tar -c --exclude=__pycache__ include examples test lib/library lib/typing/mma.def lib/typing/numba.def lib/ir/math.def lib/derive/derivatives.def | tar -x -C "$tree/programs"

# lit, and FileCheck with what it is linked to. It names libz3 but calls nothing of it: an empty library of that name saves 20 MB.
filecheck=$(cached KJIT_FILECHECK)
cp -L "$filecheck" "$tree/checks/FileCheck.bin"
ldd "$filecheck" | awk '$3 ~ /lib(z|zstd|stdc\+\+|gcc_s)\.so/ { print $3 }' | xargs cp -L -t "$tree/checks/lib"
if nm -D "$filecheck" | grep -q ' U Z3_'; then
  ldd "$filecheck" | awk '/libz3/ { print $3 }' | xargs cp -L -t "$tree/checks/lib"
else
  gcc -shared -x c -o "$tree/checks/lib/libz3.so.4" -Wl,-soname,libz3.so.4 /dev/null
fi
cat > "$tree/checks/FileCheck" <<'WRAPPER'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
LD_LIBRARY_PATH=$here/lib exec "$here/FileCheck.bin" "$@"
WRAPPER
chmod +x "$tree/checks/FileCheck"
cp -r "$(dirname "$(readlink -f "$(cached KJIT_LIT)")")/../utils/lit" "$tree/checks/lit"
find "$tree/checks/lit" -name __pycache__ -prune -exec rm -rf {} +
cp scripts/count-results.py scripts/run-bundle-tests.sh "$tree/checks/"
install -D -t "$tree/programs/scripts" scripts/check-gpu.sh
mv "$tree/checks/run-bundle-tests.sh" "$tree/run-tests.sh"
# The tools' OpenMP and the unit tests' cmocka, found through the run paths.
ldd build/bundle/bin/* build/bundle/test/unit/*_test | awk '/lib(gomp|cmocka)\.so/ { print $3 }' | sort -u | xargs -r cp -L -t "$tree/lib"

XZ_OPT=-T0 tar -C "$out" -cJf "$out/kjit.tar.xz" kjit
python3 scripts/check-elf.py "$out/kjit.tar.xz"
python3 scripts/check-glibc.py 2.27 "$tree/lib" "$tree/bin"
size_mib=$(du -m "$out/kjit.tar.xz" | cut -f 1)
echo "bundle: $out/kjit.tar.xz, $size_mib MiB ($(du -sm "$tree" | cut -f 1) MiB unpacked)"
[ "$size_mib" -le "$limit_mib" ] || { echo "bundle: over $limit_mib MiB" >&2; exit 1; }

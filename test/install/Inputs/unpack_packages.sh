# unpack_packages.sh FOLDER CC README_EXAMPLE README PYTHON: the packages in FOLDER, one after the other: what each is and needs; unpacked side by side, what the README's C program
# prints that is built against them by pkg-config.
set -eu
cd "$1"
for package in libkjit0 libkjit-dev kjit-tools kjit-doc; do
  dpkg-deb -f "$package"_*.deb Package Depends
  dpkg-deb -x "$package"_*.deb root
  test -s root/usr/share/doc/"$package"/copyright || { echo "$package: no licence"; exit 1; }
  zcat root/usr/share/doc/"$package"/changelog.gz | grep -q '^kjit ([0-9.]*) ' || { echo "$package: no changelog"; exit 1; }
done
# A trigger of dpkg calls ldconfig, no maintainer script does.
dpkg-deb -I libkjit0_*.deb triggers | grep '^activate-noawait ldconfig$'
if dpkg-deb -I libkjit0_*.deb | grep -E 'postinst|postrm'; then echo "libkjit0 has maintainer scripts"; exit 1; fi
dpkg-deb -I libkjit0_*.deb shlibs | grep '^libkjit 0 libkjit0 (>= '
python3 "$3" "$4" . > command.sh
export PKG_CONFIG_SYSROOT_DIR=$PWD/root PKG_CONFIG_LIBDIR=$PWD/root/usr/lib/pkgconfig
# shellcheck disable=SC2046
"$2" -Wall -Werror $(pkg-config --cflags kjit) host0.c $(pkg-config --libs kjit) -Wl,-rpath,"$PWD/root/usr/lib" -o host
./host
root/usr/bin/kjit-run --version
for file in man/man1/kjit-run.1.gz bash-completion/completions/kjit-run zsh/vendor-completions/_kjit-run doc/kjit/docs/ir.md doc/kjit/examples/axpy/axpy.kir doc/kjit/NOTICE; do
  test -s root/usr/share/$file || { echo "missing: $file"; exit 1; }
done
if command -v doxygen > /dev/null; then test -s root/usr/share/man/man3/kjit_launch.3.gz || { echo "missing: man(3)"; exit 1; }; fi
# What is stripped has its symbols in a package apart, which names the file that it is of.
for package in libkjit0 kjit-tools; do
  ids=$(dpkg-deb -f "$package"-dbgsym_*.ddeb Build-Ids)
  dpkg-deb -c "$package"-dbgsym_*.ddeb > symbols
  for id in $ids; do
    grep -q "\.build-id/${id:0:2}/${id:2}\.debug" symbols || { echo "$package: no symbols of $id"; exit 1; }
  done
  test "$(echo "$ids" | wc -w)" -ge 3
done
if readelf -S root/usr/bin/kjit-run | grep '\.symtab'; then echo "kjit-run is not stripped"; exit 1; fi
# The examples are run and built as their README says, from where they were installed.
examples=root/usr/share/doc/kjit/examples
test -x "$examples"/vector_add/run.py
"$5" "$examples"/vector_add/run.py --device cpu --kjit-run root/usr/bin/kjit-run > example.log || { cat example.log; exit 1; }
cmake -S "$examples" -B examples -DCMAKE_PREFIX_PATH="$PWD/root/usr" -DCMAKE_C_COMPILER="$2" > example.log 2>&1 && cmake --build examples > example.log 2>&1 || { cat example.log; exit 1; }
for program in host functions query word_counts columns_check; do test -x "examples/$program" || { echo "not built: $program"; exit 1; }; done
if command -v lintian > /dev/null; then lintian --allow-root --suppress-tags bogus-mail-host ./*.deb; fi
if dpkg-deb -c libkjit0_*.deb | grep -E 'include|bin/|\.so ->'; then echo "libkjit0 has what is not its own"; exit 1; fi

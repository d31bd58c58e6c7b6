# unpack_packages.sh FOLDER CC README_EXAMPLE README: the packages in FOLDER, one after the other: what each is and needs; unpacked side by side, what the README's C program
# prints that is built against them by pkg-config.
set -eu
cd "$1"
for package in libkjit0 libkjit-dev kjit-tools kjit-doc; do
  dpkg-deb -f "$package"_*.deb Package Depends
  dpkg-deb -x "$package"_*.deb root
done
python3 "$3" "$4" . > command.sh
export PKG_CONFIG_SYSROOT_DIR=$PWD/root PKG_CONFIG_LIBDIR=$PWD/root/usr/lib/pkgconfig
# shellcheck disable=SC2046
"$2" -Wall -Werror $(pkg-config --cflags kjit) host0.c $(pkg-config --libs kjit) -Wl,-rpath,"$PWD/root/usr/lib" -o host
./host
root/usr/bin/kjit-run --version
for file in man/man1/kjit-run.1 bash-completion/completions/kjit-run zsh/vendor-completions/_kjit-run doc/kjit/docs/ir.md doc/kjit/examples/axpy/axpy.kir doc/kjit/NOTICE; do
  test -s root/usr/share/$file || { echo "missing: $file"; exit 1; }
done
if command -v doxygen > /dev/null; then test -s root/usr/share/man/man3/kjit_launch.3 || { echo "missing: man(3)"; exit 1; }; fi
if dpkg-deb -c libkjit0_*.deb | grep -E 'include|bin/|\.so ->'; then echo "libkjit0 has what is not its own"; exit 1; fi

#!/usr/bin/env bash
# Makes the site of docs/ and the headers, as HTML in build/site/html, and man(3) pages in build/site/man3. Fails where Sphinx warns and where a link leads nowhere.
# scripts/check-site.py build/site/html --browser looks at the widths of all pages in Chromium.
# Needs Debian's doxygen, python3-sphinx, python3-myst-parser and furo: scripts/make-site.sh --install gets them (as root or with sudo).
set -eu
cd "$(dirname "$0")/.."
packages=(doxygen python3-sphinx python3-myst-parser furo)
if [ "${1:-}" = --install ]; then
  as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get -q install -y --no-install-recommends "${packages[@]}"
fi
for need in doxygen sphinx-build; do
  command -v "$need" > /dev/null || [ -x "/usr/bin/$need" ] || { echo "make-site: no $need: install ${packages[*]}, or run with --install" >&2; exit 1; }
done

out=build/site
rm -rf "$out"
mkdir -p "$out"
cp -r docs "$out/source"
/usr/bin/python3 scripts/make-reference.py --markdown "$out/source/reference" --man "$out/man3"
/usr/bin/python3 -m sphinx -q -W --keep-going -j auto -b html -c docs/site -d "$out/doctrees" "$out/source" "$out/html"
/usr/bin/python3 scripts/check-site.py "$out/html"
echo "make-site: $out/html/index.html"

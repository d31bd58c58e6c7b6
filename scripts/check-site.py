#!/usr/bin/env python3
"""check-site.py FOLDER: follows every link of the HTML pages in the folder that leads to a file of it, also to a place in
a page; says which lead nowhere and exits 1. Links to other sites are not followed."""
import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value:
                self.links.append((self.getpos()[0], value))


def broken(root, pages):
    for path, page in pages.items():
        for line, link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            place = urllib.parse.unquote(parts.fragment)
            if not target.is_file() or (place and target in pages and place not in pages[target].places):
                yield f"{path.relative_to(root)}:{line}: the link leads nowhere: {link}"


root = pathlib.Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
wrong = list(broken(root, pages))
print("\n".join(wrong + [f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(wrong)} lead nowhere"]))
sys.exit(bool(wrong) or not pages)

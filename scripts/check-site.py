#!/usr/bin/env python3
"""check-site.py FOLDER [--browser]: checks every link in the folder's HTML pages and style sheets that leads to a file in the
folder or to an anchor in a page, and exits 1 if a target does not exist. The script does not check links to other sites.

--browser: also opens each page in Chromium (Debian's package chromium) at the width of a phone and of a desktop, and prints the
pages that are wider than the window, with the element that is too wide."""
import argparse
import functools
import html.parser
import http.server
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

WIDTHS = (390, 1280)
PATIENCE_S = 600  # maximum time for Chromium to report a page
# Opens each page in a frame with the given width. A page cannot distinguish the frame from a window.
SCRIPT = """<!doctype html><body style="margin:0"><script>
function culprit(document, width) {
  const wide = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > width + 1 &&
    !e.closest(".highlight pre, .table-wrapper, .sidebar-drawer, .toc-drawer"));
  const last = wide[wide.length - 1];
  return last ? last.tagName.toLowerCase() + ": " + last.textContent.trim().slice(0, 60) : "";
}
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style = `width:${width}px;height:800px;border:0`;
  frame.src = "/" + page;
  document.body.replaceChildren(frame);
  await new Promise(done => frame.onload = done);
  const inner = frame.contentDocument, measured = inner.documentElement.scrollWidth;
  return { page, width, measured, culprit: measured > width ? culprit(inner, width) : "" };
}
(async () => {
  for (const page of PAGES) for (const width of WIDTHS)
    await fetch("/result", { method: "POST", body: JSON.stringify(await look(page, width)) });
})();
</script>"""


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


def broken_in_styles(root):
    """Yields the missing targets of @import and url() in style sheets. A path from the root of a server is outside of the
    site."""
    for path in sorted(root.rglob("*.css")):
        text = re.sub(r"/\*.*?\*/", lambda found: re.sub(r"[^\n]", "", found[0]), path.read_text(), flags=re.DOTALL)
        for found in re.finditer(r"""url\(\s*["']?([^"')]+)["']?\s*\)|@import\s+["']([^"']+)["']""", text):
            link = found[1] or found[2]
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or not parts.path:
                continue
            if link.startswith("/") or not (path.parent / urllib.parse.unquote(parts.path)).is_file():
                yield f"{path.relative_to(root)}:{text.count(chr(10), 0, found.start()) + 1}: the link leads nowhere: {link}"


class Handler(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *arguments, pages, results, news, **named):
        self.pages, self.results, self.news = pages, results, news
        super().__init__(*arguments, **named)

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        if self.path != "/look":
            return super().do_GET()
        self.answer(SCRIPT.replace("PAGES", json.dumps(self.pages)).replace("WIDTHS", json.dumps(WIDTHS)))

    def do_POST(self):
        self.results.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.answer("")
        self.news.release()


def too_wide(root, pages):
    """Returns the browser's result for each page at each width."""
    chromium = shutil.which("chromium") or sys.exit("check-site: --browser needs chromium: apt install chromium")
    results, news, names = [], threading.Semaphore(0), [str(path.relative_to(root)) for path in pages]
    handler = functools.partial(Handler, directory=str(root), pages=names, results=results, news=news)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, tempfile.TemporaryDirectory() as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [chromium, "--headless", "--disable-gpu", "--mute-audio", f"--user-data-dir={profile}",
                   *(["--no-sandbox"] if os.geteuid() == 0 else []), f"http://127.0.0.1:{server.server_port}/look",
                   "--remote-debugging-port=0"]  # without this option Chromium ends when the page is loaded
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            while len(results) < len(names) * len(WIDTHS) and news.acquire(timeout=PATIENCE_S):
                pass
            browser.terminate()
        server.shutdown()
    if len(results) < len(names) * len(WIDTHS):
        yield f"the browser told of {len(results)} of {len(names) * len(WIDTHS)} pages"
    for found in results:
        if found["measured"] > found["width"]:
            yield f"{found['page']}: {found['measured']} pixels wide where there are {found['width']}: {found['culprit']}"


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--browser", action="store_true", help="look at the widths of pages in Chromium, too")
options = parser.parse_args()
root = options.folder.resolve()
pages = {path: Page(path) for path in sorted(root.rglob("*.html"))}
wrong = list(broken(root, pages)) + list(broken_in_styles(root))
print("\n".join(wrong + [f"{len(pages)} pages, {sum(len(page.links) for page in pages.values())} links, {len(wrong)} lead nowhere"]))
if options.browser:
    wide = list(too_wide(root, pages))
    print("\n".join(wide + [f"{len(pages)} pages at {len(WIDTHS)} widths, {len(wide)} too wide"]))
    wrong += wide
sys.exit(bool(wrong) or not pages)

"""Links of a site that lead nowhere, and what its pages load from elsewhere:  tests/site.py FOLDER"""
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        for name in ("href", "src"):
            if name in given and given.get("rel") != "canonical":  # which names the page itself
                (self.links if tag == "a" else self.loads).add(given[name])


site = Path(sys.argv[1]).resolve()
pages = {path: Page(path) for path in site.rglob("*.html")}
wrong = []
for path, page in pages.items():
    for link in page.links | page.loads:
        to = urlsplit(link)
        if to.scheme or to.netloc:
            wrong += [f"{path.relative_to(site)} loads {link}"] * (link in page.loads and to.scheme != "data")
            continue
        target = (path.parent / unquote(to.path)).resolve() if to.path else path
        state = "=" in to.fragment  # of the live page, which reads it
        found = target in pages and (not to.fragment or state or unquote(to.fragment) in pages[target].ids)
        if not found and not (target.is_file() and target not in pages):
            wrong.append(f"{path.relative_to(site)} leads to {link}")
print("\n".join(sorted(wrong)) or f"{len(pages)} pages")
sys.exit(bool(wrong) or len(pages) < 100)

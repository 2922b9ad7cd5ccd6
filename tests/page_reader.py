"""Read a page that the library writes: its tags, ids and words, and whether it would load anything."""

from __future__ import annotations

import re
from html.parser import HTMLParser

__all__ = ["Reader"]

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Reader(HTMLParser):
    """Collects tags, ids and text, and checks that elements are closed in order."""

    def __init__(self, page):
        super().__init__()
        self.page = page
        self.open, self.tags, self.attributes, self.ids, self.words = [], [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        """All words of the page, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def faults(self):
        """Elements left open, ids that are there twice, and whatever would be loaded or executed."""
        found = [f"<{tag}> is not closed" for tag in self.open]
        found += [f"id '{name}' twice" for name in set(self.ids) if self.ids.count(name) > 1]
        found += [f"<{tag}>" for tag in {"script", "link", "img", "iframe", "object"} & set(self.tags)]
        loading = ("src", "href", "xlink:href", "srcset", "data")
        found += [f"{name}={value}" for _, name, value in self.attributes if name in loading and value[:1] != "#"]
        found += [f"{name}={value}" for _, name, value in self.attributes if name.startswith("on")]
        found += [f"url({target})" for target in re.findall(r"url\(([^)]+)\)", self.page) if target[:1] != "#"]
        spaces = {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}  # names, never loaded
        found += sorted(set(re.findall(r"https?://[^\"' <>]+", self.page)) - spaces)
        if "@import" in self.page or "default-src 'none'" not in self.page:
            found.append("the policy does not forbid loading")
        return found

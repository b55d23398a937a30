"""Makes one static site from the libraries' documentation (.build/docs/*.doccarchive) and docs/*.md.

--base is the path below which the site is served, because pages of the archives contain absolute paths.
"""

import argparse
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import markdown

from .common import ROOT, Skipped

# The pages of both menus by topic. All pages of docs except docs/adr must be listed. Library/Article is an article.
USERS = [
    ("Start", ["README", "start", "Countersign/QuickStart", "Countersign/InXcode", "Countersign/TestingYourIntegration"]),
    ("Apps", [f"guides/{page}" for page in (
        "record-events", "web", "python-and-c", "troubleshooting", "move-from/braze", "move-from/bloomreach",
        "move-from/transistorsoft")]),
    ("Backends", [f"guides/{page}" for page in (
        "sign-tokens", "identity-providers", "rotate-keys", "read-events", "webhooks", "export-files", "nats-jetstream")]),
    ("Operators", ["operating/README", "guides/roll-out-enforcement", "guides/dashboard"] + [f"operating/{page}" for page in (
        "install", "configure", "backup", "upgrade", "monitor", "several-gateways", "kubernetes", "security")]),
    ("Reference", [f"reference/{page}" for page in (
        "http-api", "event-format", "error-codes", "admin-api", "cli", "settings", "metrics", "limits")]
     + ["proof", "CHANGELOG", "SECURITY"]),
]
CONTRIBUTORS = [
    ("Contribute", ["CONTRIBUTING"] + [f"internals/{page}" for page in (
        "architecture", "delivery-pipeline", "gateway", "testing", "concurrency", "glossary", "releasing")]),
]
NAMES = {"README": "Overview"}


def source(page):
    if page[0].isupper() and not page.isupper():
        module, article = page.split("/")
        return ROOT / f"Sources/SDK/{module}/{module}.docc/{article}.md"
    return ROOT / f"{page}.md" if page.isupper() else ROOT / "docs" / f"{page}.md"


def pages():
    """The menus of users and of contributors; the latter also lists docs/adr."""
    listed = [page for _, names in USERS + CONTRIBUTORS for page in names]
    there = [str(p.relative_to(ROOT / "docs"))[:-3] for p in sorted((ROOT / "docs").rglob("*.md"))]
    decisions = [page for page in there if page.startswith("adr/")]
    missing = set(there) - set(decisions) - set(listed)
    if missing:
        sys.exit(f"site: add these pages to a section in tools/site.py: {', '.join(sorted(missing))}")
    return USERS, CONTRIBUTORS + [("Decisions", decisions)]


def title(text, page):
    return NAMES.get(page) or re.sub(r"[*`]", "", re.search(r"^# (.+)$", text, re.M)[1])


class Site:
    def __init__(self, archives, folder, base):
        self.archives, self.folder, self.base = archives, folder, base.rstrip("/")
        self.groups = pages()
        # The pages of each group in order, without articles of libraries, because DocC makes their pages.
        self.orders = [[page for _, names in group for page in names if source(page).parent.suffix != ".docc"] for group in self.groups]
        self.outputs = {source(page): f"{page}.html" for order in self.orders for page in order}
        self.index = []
        self.files = set()
        self.problems = []
        self.seen = set()

    def make(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.titles = {page: title(source(page).read_text(), page) for group in self.groups for _, names in group for page in names}
        self.modules = [self.archive(path) for path in sorted(self.archives.glob("*.doccarchive"))]
        for order in self.orders:
            for page in order:
                self.page(page, order)
        shutil.copyfile(self.folder / "README.html", self.folder / "index.html")
        for path in sorted(self.files):
            self.copy(path)
        for name in ("site.css", "site.js", "search.js"):
            shutil.copyfile(ROOT / "docs/site" / name, self.folder / name)
        (self.folder / "search.json").write_text(json.dumps(self.index, separators=(",", ":")))
        self.check_links()
        self.ask()
        if self.problems:
            sys.exit("site: " + "\nsite: ".join(self.problems))
        print(f"site: {len(self.outputs)} pages, {len(self.modules)} libraries, {len(self.index)} entries to search,"
              f" in {os.path.relpath(self.folder)}")

    def check_links(self):
        """Checks that each link of a page leads to a file of the site, and its anchor to a heading."""
        for page in self.outputs.values():
            text = (self.folder / page).read_text()
            for target in re.findall(r'href="(?![a-z]+:)([^"]+)"', text):
                path, _, anchor = html.unescape(target).partition("#")
                file = (self.folder / page).parent / path if path else self.folder / page
                file = file / "index.html" if path.endswith("/") else file
                if not file.exists():
                    self.problems.append(f"{page}: {target} is a broken link")
                elif anchor and "/api/" not in str(file) and f'id="{anchor}"' not in file.read_text():
                    self.problems.append(f"{page}: there is no heading {target}")

    def ask(self):
        """Checks that the search finds the expected pages for the questions of docs/site/questions.test.mjs."""
        if not shutil.which("node"):
            print("site: the search was not checked, because node is not installed")
        elif subprocess.run(["node", ROOT / "docs/site/questions.test.mjs", self.folder / "search.json"]).returncode:
            self.problems.append("the search does not find the expected pages")

    def add(self, markup, page, address, **more):
        """Adds the sections of a page to the search index, with their text."""
        for anchor, heading, text in re.findall(r'<h[1-6] id="([^"]*)">(.*?)</h[1-6]>(.*?)(?=<h[1-6] id=|$)', markup, re.S):
            where = "" if markup.startswith(f'<h1 id="{anchor}"') else "#" + anchor
            self.index.append({"t": plain(heading), "p": page, "u": address + where, "x": plain(text), **more})

    def page(self, page, order):
        text = source(page).read_text()
        output = self.folder / f"{page}.html"
        output.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * page.count("/")
        body, reader = convert(text)
        body = re.sub(r'(href|src)="([^"]+)"', lambda m: f'{m[1]}="{self.link(m[2], page, up)}"', body)
        self.add(body, self.titles[page], f"{page}.html", **({"c": 1} if order is self.orders[1] else {}))
        headings = [entry for entry in flat(reader.toc_tokens) if entry["level"] == 2]
        if len(headings) > 2:
            contents = "".join(f'<li><a href="#{entry["id"]}">{entry["name"]}</a></li>' for entry in headings)
            body = re.sub(r"</h1>", f'</h1><details class="contents"><summary>On this page</summary><ul>{contents}</ul></details>', body, count=1)
        place = order.index(page)
        steps = [f'<a rel="{rel}" href="{up}{order[at]}.html">{arrow.format(html.escape(self.titles[order[at]]))}</a>'
                 if 0 <= at < len(order) else "<span></span>" for rel, at, arrow in (("prev", place - 1, "← {}"), ("next", place + 1, "{} →"))]
        output.write_text(TEMPLATE.format(title=html.escape(self.titles[page]), up=up, nav=self.nav(page, up),
                                          body=body + f'<p class="pages">{"".join(steps)}</p>'))

    def nav(self, current, up):
        """The HTML of the menu of the page's group, with a link to the other group."""
        mine = next(group for group, order in zip(self.groups, self.orders) if current in order)
        parts = []
        for name, names in mine:
            links = "".join(
                f'<li><a href="{self.address(page, up)}"{" aria-current=page" if page == current else ""}>'
                f"{html.escape(self.titles[page])}</a></li>" for page in names if self.address(page, up))
            parts.append(f'<details{" open" if name != "Decisions" or current in names else ""}><summary>{name}</summary><ul>{links}</ul></details>')
        links = "".join(f'<li><a href="{up}api/{m}/documentation/{m.lower()}/">{m}</a></li>' for m in self.modules)
        isUsers = mine is self.groups[0]
        other = f'<p><a href="{up}CONTRIBUTING.html">For contributors</a></p>' if isUsers else f'<p><a href="{up}index.html">For users</a></p>'
        return "".join(parts) + (f"<details open><summary>Libraries</summary><ul>{links}</ul></details>" if isUsers and links else "") + other

    def address(self, page, up):
        """The address of a page of the menu, or None for an article of a library that was not built."""
        if source(page) in self.outputs:
            return f"{up}{page}.html"
        module, article = page.split("/")
        return f"{up}api/{module}/documentation/{module.lower()}/{article.lower()}/" if module in self.modules else None

    def link(self, target, page, up):
        """The address in the site for a link of a document. Notes the target for `copy` if it is a file and not a page."""
        target = html.unescape(target)
        if re.match(r"[a-z]+:|#", target):
            return html.escape(target)
        path, _, anchor = target.partition("#")
        found = (source(page).parent / path).resolve()
        tail = "#" + anchor if anchor else ""
        if found in self.outputs:
            return up + self.outputs[found] + tail
        if found.suffix == ".md" and found.parent.suffix == ".docc":
            module, article = found.parent.stem, found.stem.lower()
            leaf = "" if article == module.lower() else article + "/"
            return f"{up}api/{module}/documentation/{module.lower()}/{leaf}{tail}"
        if not found.exists():
            self.problems.append(f"{page}: {target} is a broken link")
        elif found.is_dir():
            read = found / "README.md"
            found = read if read.exists() else found
        self.files.add(found)
        return up + "files/" + str(found.relative_to(ROOT)) + (".txt" if found.suffix != ".png" and found.suffix != ".svg"
                                                              else "")

    def copy(self, path):
        """Copies a file to which a page links: pictures unchanged, sources as text, folders as a list of their files."""
        name = path.relative_to(ROOT)
        target = self.folder / "files" / (str(name) if path.suffix in (".png", ".svg") else f"{name}.txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            target.write_text("".join(f"{p.relative_to(ROOT)}\n" for p in sorted(path.rglob("*"))
                                      if p.is_file() and ".build" not in p.parts))
        elif path.exists():
            shutil.copyfile(path, target)

    def archive(self, path):
        module = path.stem
        target = self.folder / "api" / module
        target.parent.mkdir(exist_ok=True)
        beside = pathlib.Path(shutil.which("swift")).resolve().parent / "docc"
        subprocess.run([beside if beside.exists() else "docc", "process-archive", "transform-for-static-hosting", str(path), "--output-path", str(target),
                        "--hosting-base-path", f"{self.base}/api/{module}"], check=True, stdout=subprocess.DEVNULL)
        for file in target.rglob("index.html"):
            text = file.read_text()
            file.write_text(text.replace("<noscript>", HINT + "<noscript>", 1))
        for article in sorted(ROOT.glob(f"Sources/*/{module}/{module}.docc/*.md")):
            name = title(article.read_text(), module)
            leaf = "" if article.stem == module else article.stem.lower() + "/"
            self.add(convert(article.read_text())[0], name, f"api/{module}/documentation/{module.lower()}/{leaf}")
        languages = json.loads((path / "index/index.json").read_text())["interfaceLanguages"]
        for node in languages.get("swift", []):
            self.symbols(node, module)
        return module

    def symbols(self, node, module):
        path = node.get("path", "")
        # Without inherited implementations, and each symbol once, although it may be in several groups.
        if path and "-implementations" not in path and path not in self.seen:
            self.seen.add(path)
            self.index.append({"t": node["title"], "p": module, "u": f"api/{module}{path}/"})
        for child in node.get("children", []):
            self.symbols(child, module)


def convert(text):
    reader = markdown.Markdown(extensions=["tables", "fenced_code", "toc", "sane_lists", "md_in_html"],
                               extension_configs={"toc": {"slugify": slug}})
    return reader.convert(text), reader


def plain(markup):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def slug(text, separator):
    """An anchor as GitHub derives it from a heading, because the documents link to such anchors."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


def flat(tokens):
    for token in tokens:
        yield token
        yield from flat(token["children"])


HINT = ("<script>if(location.protocol==='file:')document.write('<p style=\"font:16px sans-serif;margin:3em\">These pages "
        "need a web server: run <code>make docs OPEN=1</code>.</p>')</script>")

TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} - Countersign</title>
<link rel="stylesheet" href="{up}site.css"><script src="{up}search.js" defer></script><script src="{up}site.js" data-root="{up}" defer></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header><input type="checkbox" id="menu" aria-label="Menu"><label for="menu" aria-hidden="true">Menu</label><a href="{up}index.html">Countersign</a>
<form role="search"><input type="search" placeholder="Search (press /)" aria-label="Search" autocomplete="off"></form>
<ol id="results" hidden></ol></header>
<p id="hint" hidden>Opened as a file: the pages can be read, but search and the libraries' reference need a web server. Run <code>make docs OPEN=1</code>.</p>
<div class="columns"><nav aria-label="Pages">{nav}</nav><main id="content">{body}</main></div>
</body>
</html>
"""


def main(arguments):
    parser = argparse.ArgumentParser(prog="python3 -m tools site", description=__doc__.splitlines()[0])
    parser.add_argument("--base", default="")
    docs = ROOT / ".build/docs"
    if not list(docs.glob("*.doccarchive")):
        raise Skipped("the libraries' documentation is not built")
    Site(docs, docs / "site", parser.parse_args(arguments).base).make()

"""The frame of a page: HTML and CSS without scripts, and the one place where text becomes markup."""

import html

__all__ = ["clean", "element", "escape", "page", "plain", "section", "table"]

JOINERS = "\u200c\u200d"  # parts of words of some scripts, which are not printable by themselves

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #565d66; --line: #d3d8de; --panel: #f4f6f8;
  --accent: #00558a; --fill: #5b9fcb; --noise: #8f4200; --noise-fill: #d9a37a; --warn: #fff3e0; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e9ecef; --soft: #aab2bb; --line: #3a4149;
  --panel: #1e2329; --accent: #7cc0ee; --fill: #3f7da6; --noise: #ffb27a; --noise-fill: #8a5a34; --warn: #33261a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 2.4rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; }
a { color: var(--accent); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: 0; margin: .8rem 0 0; }
.caption, figcaption, caption, footer { color: var(--soft); font-size: .92rem; }
.caption { margin: 0; font-size: 1rem; }
.warning { background: var(--warn); border-left: .3rem solid var(--noise); padding: .6rem .9rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { font-weight: 600; color: var(--soft); border-bottom-width: 2px; overflow-wrap: normal; }
tbody th { font-weight: 600; width: 11rem; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
.noise { color: var(--noise); font-style: italic; }
.tag { display: inline-block; font-size: .8rem; font-weight: 600; color: var(--noise); border: 1px solid currentColor;
  border-radius: .3rem; padding: 0 .35rem; white-space: nowrap; }
.size { display: inline-block; width: 4rem; margin-right: .5rem; background: var(--panel); }
.bar { display: block; height: .7rem; background: var(--fill); }
figure { margin: 1rem 0; background: var(--panel); padding: .8rem; border-radius: .4rem; }
figcaption { margin-top: .4rem; }
.scroll { overflow-x: auto; }
svg { display: block; width: 100%; height: auto; margin: 0 auto; }
svg text { font: 13px system-ui, sans-serif; fill: var(--ink); }
svg .quiet { fill: var(--soft); }
svg .circle { fill: var(--fill); fill-opacity: .55; stroke: var(--accent); }
svg .circle.is-noise, svg .mark.is-noise { fill: var(--noise-fill); stroke: var(--noise); }
svg .circle.is-noise { stroke-dasharray: 4 3; }
svg .mark { fill: var(--fill); }
svg .branch { fill: none; stroke: var(--accent); stroke-width: 1.6; }
svg .axis { stroke: var(--line); }
svg .floor { stroke: var(--noise); stroke-width: 1.6; stroke-dasharray: 6 4; }
dl { margin: .5rem 0; }
dl div { display: grid; grid-template-columns: 9.5rem 1fr; gap: .2rem 1rem; padding: .4rem 0;
  border-bottom: 1px solid var(--line); }
dt { font-weight: 600; }
dd { margin: 0; max-width: 46rem; overflow-wrap: anywhere; }
footer { padding-top: 2rem; padding-bottom: 2rem; }
@media (max-width: 40rem) {
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap; }
  table, tbody, tr, th, td, caption { display: block; width: auto; }
  tr { padding: .6rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td { width: auto; padding: .1rem 0; border: 0; }
  td.number::before { content: attr(data-head) ": "; color: var(--soft); }
  dl div { grid-template-columns: 1fr; }
}
@media print { figure { break-inside: avoid; } nav { display: none; } }
"""
# Nothing may be loaded or run, whatever a word may smuggle in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def clean(value):
    """Return text without characters that are not shown or turn the direction of what is read."""
    text = " ".join(str(value).split())
    return "".join(letter if letter.isprintable() or letter in JOINERS else "\ufffd" for letter in text)


def escape(value):
    """Return text of which a page takes nothing for markup, also within quotes.

    Examples
    --------
    >>> escape("<b>'&")
    '&lt;b&gt;&#x27;&amp;'
    """
    return html.escape(clean(value), quote=True)


def plain(value):
    """Return text from outside as an element of its own, which does not turn the direction of its neighbours."""
    return f"<bdi>{escape(value)}</bdi>"


def element(name, content, **attributes):
    """Return an element; `content` is markup, attributes are text."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(text)}"' for key, text in attributes.items())
    return f"<{name}{written}>{content}</{name}>\n"


def section(heading, content, name):
    """Return a section with a heading; the navigation is made of these."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-h">\n<h2 id="{name}-h">{heading}</h2>\n{content}\n</section>\n'
    )


def table(caption, heads, rows):
    """Return a table whose first column heads the rows, and which stays one where it is shown as cards."""
    lines = [element("caption", escape(caption))]
    head = "".join(element("th", escape(name), scope="col", role="columnheader") for name in heads)
    lines.append(f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n<tbody role="rowgroup">\n')
    for first, *others in rows:
        cells = [element("th", first, scope="row", role="rowheader")]
        for name, cell in zip(heads[1:], others, strict=True):
            kind = {} if name.startswith("Words") else {"class_": "number", "data_head": name}
            cells.append(element("td", cell, role="cell", **kind))
        lines.append(element("tr", "".join(cells), role="row"))
    return f'<table role="table">\n{"".join(lines)}</tbody></table>\n'


def page(title, caption, body, foot):
    """Return the whole page; `body` is markup that `section` made, the others are text."""
    sections = [part.split('"', 1)[0] for part in body.split('<section id="')[1:]]
    headings = [part.split("</h2>", 1)[0].split(">", 1)[1] for part in body.split("<h2 ")[1:]]
    links = "".join(f'<li><a href="#{name}">{text}</a></li>' for name, text in zip(sections, headings, strict=True))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="caption">{escape(caption)}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{body}</main>
<footer><p>{escape(foot)}</p></footer>
</body>
</html>
"""

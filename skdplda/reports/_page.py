"""The frame of a page: HTML and CSS without scripts, and the one place where text becomes markup."""

import html

__all__ = ["clean", "element", "escape", "page", "plain", "section", "table"]

JOINERS = "\u200c\u200d"  # parts of words of some scripts, which are not printable by themselves

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #565d66; --line: #d3d8de; --panel: #f5f7f9;
  --accent: #00558a; --fill: #7fb5d9; --noise: #8f4200; --pale: #ccd3da; --warn: #fff3e0; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --ink: #e9ecef; --soft: #aab2bb; --line: #3a4149;
  --panel: #1e2329; --accent: #7cc0ee; --fill: #35719b; --noise: #ffb27a; --pale: #454d56; --warn: #33261a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); line-height: 1.55; font-size: 1rem; }
body, svg text { font-family: system-ui, "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR",
  "PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Malgun Gothic", sans-serif; }
header, main, footer { max-width: 70rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 2rem; }
h1 { font-size: 2.1rem; line-height: 1.2; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.35rem; margin: 2.4rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .3rem; }
p, li { max-width: 46rem; }
a { color: var(--accent); }
a:focus-visible, summary:focus-visible, pre:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: .3rem; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; padding: 0; margin: .8rem 0 0; }
nav a { display: inline-block; padding: .15rem 0; }
.caption, figcaption, caption, footer { color: var(--soft); font-size: .92rem; }
.caption { margin: 0; font-size: 1rem; }
.warning { background: var(--warn); border-left: .3rem solid var(--noise); padding: .6rem .9rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1rem; margin: 1rem 0; }
.card { border: 1px solid var(--line); border-top: .3rem solid var(--accent); border-radius: .4rem; padding: .7rem 1rem;
  background: var(--panel); break-inside: avoid; }
.card h3 { margin: 0; font-size: 1.15rem; line-height: 1.3; overflow-wrap: anywhere; }
.card p { margin: .1rem 0 .5rem; color: var(--soft); font-size: .92rem; }
.card ol { list-style: none; margin: 0; padding: 0; }
.card li { display: grid; grid-template-columns: 7.2rem 1fr 2.4rem; gap: .5rem; align-items: center; line-height: 1.6; }
.card li > :first-child { overflow-wrap: anywhere; line-height: 1.25; }
.card li > :last-child { text-align: right; color: var(--soft); font-size: .85rem; font-variant-numeric: tabular-nums; }
.is-noise { border-top-color: var(--pale); }
.is-noise h3, .noise { color: var(--soft); font-weight: 400; }
.track { position: relative; display: block; height: .72rem; }
.bar { display: block; height: 100%; background: var(--fill); }
.noise .bar { background: var(--pale); }
.error { position: absolute; top: calc(50% - 1px); height: 2px; background: var(--ink); }
summary { cursor: pointer; color: var(--accent); padding: .3rem 0; }
.tag { display: inline-block; font-size: .8rem; font-weight: 600; color: var(--noise); border: 1px solid currentColor;
  border-radius: .3rem; padding: 0 .35rem; white-space: nowrap; }
.size { display: inline-block; width: 4rem; height: .7rem; margin-right: .5rem; background: var(--panel); }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .45rem .6rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
thead th { font-weight: 600; color: var(--soft); border-bottom-width: 2px; overflow-wrap: normal; }
tbody th { font-weight: 600; width: 11rem; }
td.number { white-space: nowrap; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; background: var(--panel); padding: .8rem; border-radius: .4rem; break-inside: avoid; }
figcaption { margin-top: .4rem; }
pre { background: var(--panel); padding: .7rem; overflow-x: auto; font-size: .85rem; line-height: 1.4; }
svg { display: block; width: 100%; height: auto; margin: 0 auto; }
svg text { font-size: 13px; fill: var(--ink); }
svg .quiet { fill: var(--soft); }
svg .circle { fill: var(--fill); fill-opacity: .45; stroke: var(--accent); }
svg .branch { fill: none; stroke: var(--accent); stroke-width: 1.6; }
svg .axis { stroke: var(--line); }
svg.narrow { display: none; max-width: 26rem; }
dl { margin: .5rem 0; }
dl > div { display: grid; grid-template-columns: 9.5rem minmax(0, 1fr); gap: .2rem 1rem; padding: .4rem 0;
  border-bottom: 1px solid var(--line); }
dt { font-weight: 600; }
dd { margin: 0; max-width: 46rem; overflow-wrap: anywhere; }
footer { padding-top: 2rem; padding-bottom: 2rem; }
@media screen and (max-width: 40rem) {
  svg.wide { display: none; }
  svg.narrow { display: block; }
  .cards { grid-template-columns: 1fr; }
  figure { padding: .5rem; }
  thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap; }
  table, tbody, tr, th, td, caption { display: block; width: auto; }
  tr { padding: .6rem 0; border-bottom: 1px solid var(--line); }
  tbody th, td { width: auto; padding: .1rem 0; border: 0; }
  td.number::before { content: attr(data-head) ": "; color: var(--soft); }
  dl > div { grid-template-columns: minmax(0, 1fr); }
}
@page { margin: 14mm; }
@media print { nav, .skip { display: none; } html { font-size: 9pt; } header, main, footer { padding: 0; }
  .cards { grid-template-columns: repeat(3, 1fr); gap: .6rem; } .card { padding: .5rem .6rem; }
  h2 { break-after: avoid; }
  .card li { grid-template-columns: 7.4rem 1fr 2.2rem; gap: .3rem; } figure svg { max-height: 62mm; }
  dl > div { break-inside: avoid; } p, li, dd { max-width: none; }
  .bar, .card, pre, figure { print-color-adjust: exact; } pre { white-space: pre-wrap; } }
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
            number = name.startswith(("Distance", "Number", "Share"))
            kind = {"class_": "number", "data_head": name} if number else {}
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
<a class="skip" href="#main">Skip to the content</a>
<header>
<h1>{escape(title)}</h1>
<p class="caption">{escape(caption)}</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main id="main" tabindex="-1">
{body}</main>
<footer><p>{escape(foot)}</p></footer>
</body>
</html>
"""

# SPDX-License-Identifier: GPL-2.0
"""SVG as text: what the pictures share that are drawn without a library. A page shows them as
images, light or dark: so each has its own background, and a second style for dark screens."""

from html import escape


def escaped(text):
    """Text as it stands in SVG."""
    return escape(text, quote=False)


def tag(name, inside="", **attributes):
    """An element; `inside` is SVG. A trailing _ of an attribute's name is not part of it, another
    is a hyphen: class_, stroke_width."""
    words = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
                    for key, value in attributes.items())
    return f"<{name}{words}>{inside}</{name}>" if inside else f"<{name}{words}/>"


def style(light, dark):
    """The CSS for either kind of screen; `light` is what both begin with."""
    return f"{light.strip()}\n@media (prefers-color-scheme: dark) {{\n{dark.strip()}\n}}"


def document(width, height, css, parts, title):
    """The whole picture; the CSS class `panel` is its background."""
    inner = [tag("title", escaped(title)), f"<style>\n{css}\n</style>",
             tag("rect", width=width, height=height, rx=8, class_="panel"), *parts]
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">')
    return "\n".join([head, *inner, "</svg>"]) + "\n"

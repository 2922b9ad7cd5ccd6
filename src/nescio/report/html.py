"""Pages as one HTML file: templates that escape what they are given and share one style, figures that lie inside."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

__all__ = ["inline_svg", "page_environment", "page_template"]


def page_environment(**filters: Callable[..., Any]) -> Environment:
    """Where the templates in ``templates/`` are found, with these filters."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment


def page_template(name: str, **filters: Callable[..., Any]) -> Template:
    """The template of this name, with these filters; it may include others, ``base.css`` for one."""
    return page_environment(**filters).get_template(name)


def inline_svg(svg: str, description: str) -> Markup:
    """An SVG element as HTML wants it: without the prolog, and with words for screen readers."""
    element = svg[svg.index("<svg") + len("<svg") :]
    return Markup(f'<svg role="img" aria-label="{escape(description)}"{element}')


def _read(name: str) -> str:
    return resources.files("nescio.report").joinpath("templates", name).read_text(encoding="utf-8")

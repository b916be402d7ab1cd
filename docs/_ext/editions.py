"""The editions of the site, one for each language, side by side."""

from sphinx.application import Sphinx


def folder(language: str) -> str:
    """Return the folder of an edition: `zh-cn` for Sphinx's language `zh_CN`."""
    return language.replace("_", "-").lower()


def add_context(app: Sphinx, pagename, templatename, context, doctree) -> None:
    """Handle `html-page-context`: give the language switcher what it shows."""
    context["edition"] = folder(app.config.language)
    context["editions"] = [
        (folder(language), name) for language, name in app.config.editions.items()
    ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the setting `editions` (language: its own name) and the handler."""
    app.add_config_value("editions", {}, "html", types=[dict])
    app.connect("html-page-context", add_context)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

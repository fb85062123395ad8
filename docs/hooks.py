"""What MkDocs does beside its plugins: links of docstrings, and the pictures of charts."""

import doctest
import io
import re
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):<code>~?([\w.]+)</code>")
_BLOCK = re.compile(r"^```pycon\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_DRAWN = re.compile(r"^>>> chart = tadoc\.plot\.(\w+)", re.MULTILINE)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark prompts, which copies leave out; on the page of charts, show each chart under the block that draws it."""
    markdown = markdown.replace("```python\n>>>", "```pycon\n>>>")
    if page.file.src_uri != "charts.md":
        return markdown
    names: dict[str, Any] = {}

    def shown(block: re.Match[str]) -> str:
        for example in doctest.DocTestParser().get_examples(block[1]):
            exec(compile(example.source, "charts.md", "exec"), names)
        if (drawn := _DRAWN.search(block[1])) is None:
            return block[0]
        picture = io.StringIO()
        names["chart"].save(picture, format="svg")
        uri = f"charts_{drawn[1]}.svg"
        files.append(File.generated(config, uri, content=picture.getvalue()))
        return f"{block[0]}\n![{drawn[1].replace('_', ' ')}]({uri})\n"

    return _BLOCK.sub(shown, markdown)


def on_page_content(html: str, **_given: object) -> str:
    """Turn ``:func:`polars_tadoc.compress``` into a link, where that name has a place in the reference."""
    return _ROLE.sub(r'<autoref optional identifier="\1"><code>\1</code></autoref>', html)

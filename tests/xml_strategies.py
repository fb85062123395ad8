"""Documents of XML, almost XML, and pieces of it."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["a", "b", "a", "b", "p:a", "q:b", "xml:c", "é", "_1", ":", "1"]
MARKUP = [
    *("<a>", "</a>", "<b>", "</b>", "<a/>", "<b c='d'>", '<b c="d" >', "<b c='>'/>", "</b >", "<p:a>", "</p:a>"),
    *("<a xmlns='u'>", "<a xmlns:p='u'>", "<p:a p:c='v' c='v'/>", "<q:a/>", "<a xml:lang='en'/>", "<a c='1' c='2'/>"),
    *("<a c=d>", "<a c>", "<a c='<'>", "<a c='&amp;'>", "<a c='&lt;&#65;'/>", "<a c='&e;'/>", "<a c='\x01'/>", "<a//>"),
    *("<!-- c -->", "<!---->", "<!-- -- -->", "<!-- --->", "<!-->", "<!--", "-->", "<!-- \x01 -->", "<!-- \ufffe -->"),
    *("<![CDATA[x]]>", "<![CDATA[<a>]]>", "<![CDATA[", "<![CDATA[]]]]>", "]]>", "<![CDATA[\x01]]>", "]]"),
    *("<?p?>", "<?p x?>", "<?p", "?>", "<?xml?>", "<?xml version='1.0'?>", "<?XML version='1.0'?>", "<?xml-p x?>"),
    *("<?xml version='1.0' encoding='UTF-8'?>", "<?xml version='1.0' encoding='latin1' standalone='yes'?>", "<??>"),
    *("<?xml version='1.1'?>", "<?xml encoding='UTF-8'?>", "<?1?>", "<?p:q x?>", "<?é?>", "<?p\x01?>", "<?p \x01?>"),
    *("<!DOCTYPE a>", "<!DOCTYPE a SYSTEM 'x.dtd'>", '<!DOCTYPE a PUBLIC "-//x" "x.dtd">', "<!DOCTYPE a []>"),
    *("<!DOCTYPE a [<!ENTITY e 'x'>]>", "<!DOCTYPE", "<!DOCTYPE>", "<!DOCTYPE a PUBLIC 'x'>", "<!DOCTYPE a [", "]>"),
    *(
        "&amp;",
        "&lt;",
        "&e;",
        "&",
        "&#65;",
        "&#x41;",
        "&#0;",
        "&#xD800;",
        "&#x110000;",
        "&#xFFFE;",
        "&;",
        "&#;",
        "&#x;",
    ),
    *(
        "<",
        ">",
        "'",
        '"',
        "/",
        "!",
        "?",
        "x",
        "y, z",
        " ",
        "\n",
        "\r\n",
        "\t",
        "\x00",
        "\x01",
        "\x7f",
        "\ufffe",
        "\ufeff",
    ),
    *("日本", "か\u3099", "\u3099", "\xa0", "\u2028", "word " * 20, "é" * 9),
]

glued = st.lists(st.sampled_from(MARKUP), max_size=12).map("".join)
"""Pieces of XML one after another, in any order."""

_INSIDE = [piece for piece in MARKUP if not piece.startswith("</") and piece not in ("<!--", "<![CDATA[", "<?p")]


@st.composite
def _near_xml(draw: st.DrawFn) -> str:
    """Elements that are closed, with anything in them, around them and, seldom, in between."""
    pieces = [draw(st.sampled_from(["", "", "\ufeff", " ", "<?xml version='1.0' encoding='UTF-8'?>", "x"]))]
    pieces.append(draw(st.sampled_from(["", "", "<!-- c -->", "<!DOCTYPE a SYSTEM 'x.dtd'>", "\n", "<?p?>", "x"])))
    opened: list[str] = []
    for _ in range(draw(st.integers(1, 8))):
        step = draw(st.integers(0, 9))
        if step < 4 or not opened:
            name = draw(st.sampled_from(["a", "b", "p:a", "é"]))
            attributes = draw(
                st.sampled_from(
                    [
                        "",
                        "",
                        "",
                        " c='v'",
                        ' c="w"',
                        " xmlns:p='u'",
                        " xmlns='u' xmlns:p='v'",
                        " p:c='v' c='v'",
                        " xml:c=''",
                    ]
                )
            )
            pieces.append(f"<{name}{attributes}>")
            opened.append(name)
        elif step < 7:
            pieces.append(f"</{opened.pop()}>")
        elif step < 9:
            pieces.append(
                draw(st.sampled_from(["x", "y z", " ", "&amp;", "<b/>", "<!-- c -->", "<![CDATA[x]]>", "&#65;"]))
            )
        else:
            pieces.append(draw(st.sampled_from(_INSIDE)))
    pieces += [f"</{name}>" for name in reversed(opened)]
    pieces.append(
        draw(st.sampled_from(["", "", "", "\n", "<!-- c -->", "x", "<a/>", "<?p?>", "&amp;", "<![CDATA[x]]>"]))
    )
    return "".join(pieces)


near_xml = _near_xml()
"""Documents that are well-formed more often than not."""

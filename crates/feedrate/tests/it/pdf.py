"""Prints what pypdf finds in PDFs as JSON: pages, size, title, fonts, and filled and stroked paths."""

import json
import sys

from pypdf import PdfReader
from pypdf.generic import ContentStream


def describe(file):
    reader = PdfReader(file, strict=True)
    page = reader.pages[0]
    operators = [operator for _, operator in ContentStream(page.get_contents(), reader).operations]
    return {
        "pages": len(reader.pages),
        "width": float(page.mediabox.width),
        "height": float(page.mediabox.height),
        "title": reader.metadata.title,
        "fonts": len(page.get("/Resources", {}).get("/Font", {})),
        "filled": sum(operator in (b"f", b"B") for operator in operators),
        "stroked": sum(operator in (b"S", b"B") for operator in operators),
    }


print(json.dumps([describe(file) for file in sys.argv[1:]]))

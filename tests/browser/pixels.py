"""What pictures show, by the browser that the tests bring."""

import base64
from contextlib import contextmanager

from tests.ui import chromium

READ = """async ([data, places]) => { const image = new Image(); image.src = data; await image.decode();
  const at = document.createElement("canvas").getContext("2d");
  at.canvas.width = image.width; at.canvas.height = image.height; at.drawImage(image, 0, 0);
  return places.map(([x, y]) => [...at.getImageData(x, y, 1, 1).data.slice(0, 3)]); }"""


@contextmanager
def eyes():
    """A function that says which colours a JPEG has at some places."""
    with chromium.started() as browser:
        page = browser.new_page()

        def colours(picture, *places):
            data = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
            return page.evaluate(READ, [data, places])

        yield colours

"""The data of a history page, read as its script does."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import numpy as np


def unpacked(data: str) -> tuple[dict[str, Any], np.ndarray]:
    """The header and the planes (4, cases, runs), read as the page's script does."""
    content = zlib.decompress(base64.b64decode(data))
    (length,) = struct.unpack_from("<I", content)
    header = json.loads(content[4 : 4 + length])
    planes = np.frombuffer(content, np.uint8, offset=4 + length)
    return header, planes.reshape(4, len(header["cases"]), len(header["runs"])).astype(int)

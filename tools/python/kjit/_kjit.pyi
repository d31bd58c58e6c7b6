"""The extension, whose names are not public."""
from typing import Any

def __getattr__(name: str) -> Any: ...

"""The one exception of the layout algebra."""


class LayoutError(ValueError):
    """An illegal request: the text names the layout, the rule broken and what would be legal."""

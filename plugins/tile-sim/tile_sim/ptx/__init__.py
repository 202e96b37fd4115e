"""Reading PTX text: tokens, syntax tree, parser."""

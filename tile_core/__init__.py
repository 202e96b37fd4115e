"""The framework of tilec: plugins, passes, pipelines. It knows no dialect."""

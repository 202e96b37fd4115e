"""Random programs, a shrinker of failing ones, and bisection of pipelines."""

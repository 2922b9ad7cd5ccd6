"""The paper made again: every figure and table with a verdict, as a site that works without a network."""

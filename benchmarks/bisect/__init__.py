"""Which commit made it slower: git bisect over the paired comparison with a good commit."""

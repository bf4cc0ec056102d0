"""Models in the files of other engines, one file here for each of them."""

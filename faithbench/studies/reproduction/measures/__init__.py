"""What the numbers of cells are read from: found where it is, made where it is not."""

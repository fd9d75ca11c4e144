# expect: += and not =
s/to_x\[r \* I + i\] += dy/to_x[r * I + i] = (o ? to_x[r * I + i] : 0) + dy/

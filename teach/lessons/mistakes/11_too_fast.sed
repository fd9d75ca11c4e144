# expect: is too large
s/return 0.01/return 1/

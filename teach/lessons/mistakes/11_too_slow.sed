# expect: is too small
s/return 0.01/return 1e-5/

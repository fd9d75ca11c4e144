# expect: take a larger h
s/1e-2f/1e-6f/

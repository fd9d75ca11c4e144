# expect: a fixed tolerance accepts anything
s/apart <= 1e-3f \* size/apart <= 1e-3f + 0 * size/

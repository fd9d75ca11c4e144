# expect: this is its square
s/return sqrt(fmax(0, \(.*\)));/return fmax(0, \1);/

# expect: rounding leaves
s/return sqrt(fmax(0, \(.*\)));/return sqrt(\1);/

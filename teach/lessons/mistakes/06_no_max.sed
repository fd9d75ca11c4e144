# expect: Is the largest z subtracted
s/max = fmaxf(max, z\[i\])/max = 0/
s/max = z\[0\]/max = 0/

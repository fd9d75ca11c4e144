# expect: Start with x[0]
s/max = x\[0\]/max = 0/

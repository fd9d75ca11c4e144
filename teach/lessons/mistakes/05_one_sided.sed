# expect: is it a one-sided difference
s/x\[i\] = kept - h;/x[i] = kept;/
s/(above - below) \/ (2 \* h)/(above - below) \/ h/

# expect: this is 1 / d, too small
s/1 \/ sqrt((double)d)/1 \/ (double)d/

# expect: these are the raw scores
s/1 \/ sqrt((double)d)/(double)(d > 0)/

# expect: dx = dy w'
s/weight\[i \* O + o\]/weight[o * I + i]/

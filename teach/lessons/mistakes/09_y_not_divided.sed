# expect: still to be divided by the sum
s/dy \* end->y \/ end->sum/dy * end->y/

# expect: that of this block's keys only
s/const double average = dy \* end->y \/ end->sum;/double average = 0;\
    for (int64_t j = 0; j < n; j++)\
        average += exp(s[j] - end->max) \/ end->sum * dy * v[j];/

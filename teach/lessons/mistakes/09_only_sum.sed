# expect: but y is not
/state->y \*= rescale/d

# expect: what came before is never scaled down
s/rescale = exp(state->max - max)/rescale = 1/

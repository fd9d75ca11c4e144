# expect: scaled the wrong way round
s/rescale = exp(state->max - max)/rescale = state->sum > 0 ? exp(max - state->max) : 0/

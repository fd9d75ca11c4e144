# expect: was never called
s/ && sb_optimiser_step(adam)/ \&\& adam/

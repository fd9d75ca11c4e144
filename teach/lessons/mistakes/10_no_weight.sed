# expect: nothing arrives in input 1
s/if (to_w)/if (to_w \&\& R < 0)/

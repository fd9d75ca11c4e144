"""Lines of which type checkers reject each one below the names that they use."""
import softback as sb

x = sb.ones((2, 2))
weights = sb.Parameters(1)
data = sb.Data.task("copy", 1)
# From here on every line is wrong.
sb.Parameters("one")
sb.Parameters(1.5)
sb.zeros("two")
sb.zeros((2, 3), dtype="float16")
sb.ones((2,), requires_gradient=True)
x + "1"
"a" - x
x @ None
x.exp(1)
x.sum(axis="all")
x.sum(dim="all")
sb.stack([x, x])
x.softmaxx()
x["a"]
x.reshape("2")
x.requires_grad()
x.scale(x)
x.cast("half")
x.shape = (4,)
sb.cross_entropy(x, [0, 1], label_smothing=0.1)
sb.cross_entropy(x, [0, 1], reduction="men")
sb.masked_softmax(x, [[True]])
sb.concatenate(x + x, axis="0")
sb.Adam(weights, lr=0.1)
sb.Adam(data)
sb.Seq2Seq(data, weights)
sb.Seq2Seq(weights, data, width="wide")
sb.Trainer(weights, data)
sb.LinearLayer(weights, 3, 2)
weights[0]
weights.save(3)
weights.clip("1")
sb.Vocabulary(["ab"], units="letters")
data.next().missing

"""Papers that lessons, headers and explanations name, as "Dao et al. 2022", and docs/sources.md does not list."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = r"[A-Z][a-z]+(?:[A-Z][a-z]+)?"
CITED = rf"\b({NAME})(?: et al\.|(?:, {NAME})*,? and {NAME}| Team)? \(?((?:19|20)\d\d)\b"
listed = {(name, year) for name, rest in re.findall(rf"^- \*\*({NAME})(.*?)\*\*", (ROOT / "docs/sources.md").read_text(), re.M)
          for year in re.findall(r"\d{4}", rest)}
for pattern in ("*/*.h", "*/*/*.h", "teach/*.md", "teach/lessons/*.md", "teach/micro.c", "teach/explain/*.c"):
    for path in sorted(ROOT.glob(pattern)):
        if path.relative_to(ROOT).parts[0] not in ("build", "tests"):
            text = re.sub(r"\s*\n\s*(?:\* )?\s*", " ", path.read_text())
            for name, year in re.findall(CITED, text):
                if (name, year) not in listed and name not in ("January", "March", "November"):
                    print(f"{path.relative_to(ROOT)}: {name} {year}")

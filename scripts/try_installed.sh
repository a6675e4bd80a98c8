#!/bin/sh
# Tries an installed forewarn in an empty folder: version, learn, replay, and the compiled parts.
set -eu
python=${1:-python}
cd "$(mktemp -d)"
"$python" -m forewarn --version
cat >monitor.yaml <<'END'
version: 1
rate: 10
signals: {speed: {}}
predicates: {fast: speed > 5}
properties:
  slow:
    formula: always(not fast)
    horizon: 1.0
    thresholds: {warn: 0.2, act: 0.4, release: 0.1}
END
"$python" - <<'END'
from forewarn.expressions.functions import _encounters
from forewarn.messages import _cdr
from forewarn.wings.scores import _trees

with open("drive.jsonl", "w") as file:
    for tick in range(600):
        file.write(f'{{"t": {tick / 10}, "speed": {3 + tick % 60 / 20}}}\n')
END
"$python" -m forewarn learn drive.jsonl -c monitor.yaml -o model.json
"$python" -m forewarn replay drive.jsonl -c monitor.yaml -m model.json --report report.html --exit-zero
"$python" -c 'import forewarn; print(forewarn.load_monitor("monitor.yaml", "model.json").start().step({"speed": 4}).state)'

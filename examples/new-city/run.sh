#!/usr/bin/env bash
# A city of your own, from check-ins to a report: run.sh FILE LAT,LON,SIDE_M MAX_LOSS_M FOLDER [USERS]
set -euo pipefail
if [ $# -lt 4 ] || [ $# -gt 5 ]; then
    echo "expected FILE LAT,LON,SIDE_M MAX_LOSS_M FOLDER [USERS]; got $# argument(s): see examples/new-city/README.md" >&2
    exit 2
fi
PATH="$(dirname "$0")/../../.venv/bin:$PATH"  # the sfumato of this clone, else the installed one
file=$1 square=$2 budget=$3 folder=$4 users=${5:-6}
select=(--square "$square" --top-users "$users" --per-user 82+20 --overlap-weight 0.15)
for solver in codebook coin laplace; do
    sfumato solve "$file" "${select[@]}" --max-loss "$budget" --solver "$solver" --out "$folder/$solver"
done
sfumato certify "$folder/codebook"
sfumato compare "$folder/codebook" "$folder/coin" "$folder/laplace" --html "$folder/report.html"

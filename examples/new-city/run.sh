#!/usr/bin/env bash
# A city of your own, from check-ins to a report: run.sh FILE LAT,LON,SIDE_M MAX_LOSS_M FOLDER
set -euo pipefail
if [ $# -ne 4 ]; then
    echo "expected FILE LAT,LON,SIDE_M MAX_LOSS_M FOLDER; got $# argument(s): see examples/new-city/README.md" >&2
    exit 2
fi
file=$1 square=$2 budget=$3 folder=$4
select=(--square "$square" --top-users 6 --per-user 82+20 --overlap-weight 0.15)
for solver in codebook coin laplace; do
    sfumato solve "$file" "${select[@]}" --max-loss "$budget" --solver "$solver" --out "$folder/$solver"
done
sfumato certify "$folder/codebook"
sfumato compare "$folder/codebook" "$folder/coin" "$folder/laplace" --html "$folder/report.html"

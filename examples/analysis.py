"""What runs in the session: reads a CSV, draws a bar for each month, and tells the sums."""
import csv


def handler(event):
    rows = list(csv.DictReader(open(event["file"])))
    revenue = {row["month"]: int(row["units"]) * float(row["price"]) for row in rows}
    best, most = max(revenue.items(), key=lambda item: item[1])
    bars = "".join(
        f'<rect x="{20 + 60 * at}" y="{180 - 150 * value / most:.0f}" width="40" height="{150 * value / most:.0f}"/>'
        f'<text x="{40 + 60 * at}" y="195" text-anchor="middle">{month}</text>'
        for at, (month, value) in enumerate(revenue.items())
    )
    with open("revenue.svg", "w") as plot:
        width = 60 * len(revenue) + 20
        plot.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} 200" font-size="12">{bars}</svg>\n')
    print(f"{len(rows)} months read")
    return {"total": round(sum(revenue.values()), 2), "best": best}

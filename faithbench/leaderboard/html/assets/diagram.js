// The critical-difference diagram: mean ranks, and who is not significantly different.

// Bars that do not overlap share a column.
function barColumns(groups) {
  const ends = [];
  return groups.map(([first, last]) => {
    let column = ends.findIndex((end) => end < first);
    if (column < 0) column = ends.push(0) - 1;
    ends[column] = last;
    return column;
  });
}

function differenceDiagram(ranking, lines) {
  const shown = new Map(lines.map(([place, label]) => [place, label]));
  const dots = lines.map(([, label, rank, low, high]) => ({
    label,
    rank,
    low,
    high,
    tip: `${label}\nmean rank ${rank.toFixed(2)}${low === null ? "" : `\n95% interval ${low.toFixed(2)} to ${high.toFixed(2)}`}`,
  }));
  const most = Math.max(...ranking.lines.map(([, rank, , high]) => high ?? rank), 2);
  const groups = ranking.groups
    .map(([first, last]) => [...shown.keys()].filter((place) => first <= place && place <= last))
    .filter((places) => places.length > 1)
    .map((places) => [places[0], places.at(-1)]);
  const columns = barColumns(groups);
  const step = most / (innerWidth < 640 ? 24 : 45);
  const bars = groups.map(([first, last], group) => ({
    from: shown.get(first),
    to: shown.get(last),
    x: most + step * (2 + columns[group]),
  }));
  const end = most + step * (3 + Math.max(0, ...columns));
  const y = {
    field: "label",
    type: "ordinal",
    sort: null,
    axis: {
      title: null,
      domain: false,
      ticks: false,
      grid: true,
      labelLimit: innerWidth < 640 ? 110 : 200,
    },
  };
  const ticks = Array.from({ length: Math.floor(most) }, (_, i) => i + 1).filter(
    (tick) => most < 12 || tick === 1 || tick % 5 === 0,
  );
  const x = (field) => ({
    field,
    type: "quantitative",
    scale: { domain: [0.4, end], nice: false, zero: false },
    axis: { title: "mean rank (1 is best)", values: ticks, orient: "top", grid: true },
  });
  const scale =
    ranking.cd === null
      ? []
      : [
          {
            data: { values: [{ from: 1, to: 1 + ranking.cd }] },
            mark: { type: "rule", strokeWidth: 3, color: colour("--accent") },
            encoding: { x: x("from"), x2: { field: "to" }, y: { value: -48 } },
          },
          {
            data: { values: [{ at: 1 + ranking.cd }] },
            mark: {
              type: "text",
              align: "left",
              dx: 6,
              text: `CD = ${ranking.cd.toFixed(2)}`,
              color: colour("--accent"),
            },
            encoding: { x: x("at"), y: { value: -48 } },
          },
        ];
  const spec = {
    width: "container",
    height: 19 * dots.length,
    autosize: { type: "fit-x", contains: "padding" },
    padding: { top: ranking.cd === null ? 5 : 20, left: 0, right: 5, bottom: 5 },
    layer: [
      {
        data: { values: dots.filter((dot) => dot.low !== null) },
        mark: { type: "rule", color: colour("--muted") },
        encoding: { y, x: x("low"), x2: { field: "high" } },
      },
      {
        data: { values: dots },
        mark: { type: "point", filled: true, size: 70, color: colour("--accent"), opacity: 1 },
        encoding: { y, x: x("rank"), tooltip: { field: "tip" } },
      },
      {
        data: { values: bars },
        mark: { type: "rule", strokeWidth: 3, strokeCap: "round", color: colour("--ink") },
        encoding: { y: { ...y, field: "from" }, y2: { field: "to" }, x: x("x") },
      },
      ...scale,
    ],
  };
  const best = dots[0]
    ? `${dots[0].label} has the lowest mean rank, ${dots[0].rank.toFixed(2)}`
    : "no explainer is shown";
  return chart(
    `Critical-difference diagram of ${dots.length} explainers: ${best}.`,
    spec,
    plainTable(
      "Groups that are not significantly different",
      ["from", "to"],
      bars.map((bar) => [name(bar.from), bar.to]),
    ),
  );
}

// Faithfulness against rows through the network, with the Pareto front.

let costBy = "rank";
const costByRank = () => costBy === "rank" && board.pareto.length > 0;

function drawCost() {
  const table = tableData();
  const column = faithfulnessColumn(table);
  const select = byId("cost-by");
  choices(
    select,
    [
      board.pareto.length ? ["rank", "mean rank over all tables"] : null,
      column ? ["table", `${column.title} on ${table.facts.id}`] : null,
    ].filter(Boolean),
    costBy,
  );
  select.onchange = () => {
    costBy = select.value;
    redraw();
  };
  const byRank = costByRank();
  const points = (byRank ? ranked() : column ? measured(table, column) : []).filter((point) =>
    wanted(point.label),
  );
  const title = byRank
    ? "mean faithfulness rank (1 is best)"
    : `${column?.title ?? "faithfulness"} ${column ? ARROWS[column.better] : ""}`;
  const lowerIsBetter = byRank || column?.better === -1;
  replace(
    byId("cost-body"),
    byRank ? null : bundledNote(),
    points.length
      ? costChart(points, title, lowerIsBetter)
      : make("p", { class: "note" }, "Nothing to show: no explainer has both a cost and a result."),
  );
}

const ranked = () =>
  board.pareto.map(([label, value, cost, front]) => ({
    label,
    value,
    cost,
    front: Boolean(front),
  }));

function measured(table, column) {
  const all = table.entrants
    .map((entrant, place) => ({
      label: entrant.label,
      value: column.cells[place]?.[0] ?? null,
      cost: entrant.cost,
    }))
    .filter((point) => point.value !== null && point.cost !== null);
  all.sort((one, two) => one.cost - two.cost || column.better * (two.value - one.value));
  let best = -Infinity;
  for (const point of all) {
    point.front = column.better * point.value > best;
    best = Math.max(best, column.better * point.value);
  }
  return all;
}

function costChart(points, title, lowerIsBetter) {
  for (const point of points) {
    point.family = familyOf.get(point.label) ?? "";
    point.tip = `${point.label}\n${title}: ${decimal(point.value)}\ncost: ${short(point.cost)} forward passes${point.front ? "\non the Pareto front" : ""}`;
  }
  const front = points.filter((point) => point.front).sort((one, two) => one.cost - two.cost);
  const values = points.map((point) => point.value);
  const lowest = Math.min(...values);
  // Room for the outermost points, but no rank 0.
  const edge = Math.min(0.9, 0.04 * (Math.max(...values) - lowest || 1));
  const most = Math.max(...points.map((point) => point.cost), 1);
  const x = {
    field: "cost",
    type: "quantitative",
    scale: { type: "symlog", constant: 1, domain: [0, most * 1.6], nice: false },
    axis: {
      title: "forward passes per example (a backward pass counts as two)",
      values: [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000],
      format: "~s",
    },
  };
  const y = {
    field: "value",
    type: "quantitative",
    scale: {
      reverse: lowerIsBetter,
      zero: false,
      nice: false,
      domain: [lowest - edge, Math.max(...values) + edge],
    },
    axis: { title },
  };
  const identity = (range) => ({
    field: "family",
    type: "nominal",
    legend: { title: null },
    scale: { domain: families, range: families.map((_, place) => range[place % range.length]) },
  });
  const spec = {
    width: "container",
    height: innerWidth < 640 ? 320 : 440,
    autosize: { type: "fit-x", contains: "padding" },
    layer: [
      {
        data: { values: front },
        mark: {
          type: "line",
          interpolate: "step-after",
          color: colour("--muted"),
          strokeDash: [4, 3],
        },
        encoding: { x, y, order: { field: "cost" } },
      },
      {
        data: { values: points },
        mark: { type: "point", filled: true, size: 95, opacity: 0.9 },
        encoding: {
          x,
          y,
          color: identity(HUES),
          shape: identity(SHAPES),
          tooltip: { field: "tip" },
        },
      },
      {
        data: { values: front },
        mark: { type: "text", align: "left", dx: 8, dy: -8, limit: innerWidth < 640 ? 110 : 260 },
        encoding: { x, y, text: { field: "label" } },
      },
    ],
  };
  const order = [...points].sort((one, two) => (lowerIsBetter ? 1 : -1) * (one.value - two.value));
  return chart(
    `Scatter plot of ${points.length} explainers, ${title} against forward passes. On the Pareto front: ${front.map((point) => point.label).join(", ")}.`,
    spec,
    plainTable(
      `${title} and cost`,
      ["explainer", title, "forward passes", "Pareto front"],
      order.map((point) => [
        name(point.label),
        decimal(point.value),
        short(point.cost),
        point.front ? "yes" : "no",
      ]),
    ),
  );
}

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
      board.pareto.length ? ["rank", "the rank over all tables"] : null,
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
  const controls = byRank ? rankedControls() : column ? measuredControls(table, column) : [];
  const title = byRank
    ? "faithfulness rank (1 is best)"
    : `${column?.title ?? "faithfulness"} ${column ? ARROWS[column.better] : ""}`;
  const lowerIsBetter = byRank || column?.better === -1;
  replace(
    byId("cost-body"),
    byRank ? null : bundledNote(),
    points.length
      ? costChart(points, controls, title, lowerIsBetter)
      : make("p", { class: "note" }, "Nothing to show: no explainer has both a cost and a result."),
  );
}

const rankedControls = () =>
  (board.ranking?.controls ?? []).map(({ label, rank }) => ({ label, value: rank }));

const measuredControls = (table, column) =>
  table.entrants
    .map((entrant, place) => [entrant, column.cells[place]?.[0] ?? null])
    .filter(([entrant, value]) => isControl(entrant) && value !== null)
    .map(([entrant, value]) => ({ label: entrant.label, value }));

const ranked = () =>
  board.pareto.map(([label, value, cost, front]) => ({
    label,
    value,
    cost,
    front: Boolean(front),
  }));

// Controls are no part of it: scores that look at nothing cost nothing.
function measured(table, column) {
  const all = table.entrants
    .map((entrant, place) => ({
      label: entrant.label,
      value: column.cells[place]?.[0] ?? null,
      cost: isControl(entrant) ? null : entrant.cost,
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

function costChart(points, controls, title, lowerIsBetter) {
  for (const point of points) {
    point.family = familyOf.get(point.label) ?? "";
    point.tip = `${point.label}\n${title}: ${decimal(point.value)}\ncost: ${short(point.cost)} forward passes${point.front ? "\non the Pareto front" : ""}`;
  }
  const front = points.filter((point) => point.front).sort((one, two) => one.cost - two.cost);
  const order = [...points].sort((one, two) => (lowerIsBetter ? 1 : -1) * (one.value - two.value));
  return chart(
    `Scatter plot of ${points.length} explainers, ${title} against forward passes. On the Pareto front: ${front.map((point) => point.label).join(", ")}.`,
    (width) => costSpec(points, front, controls, title, lowerIsBetter, width),
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

// Both axes as numbers and as pixels: labels are placed in pixels, and drawn as numbers.
function costScales(points, controls, lowerIsBetter, width) {
  const values = [...points, ...controls].map((point) => point.value);
  const [lowest, highest] = [Math.min(...values), Math.max(...values)];
  // Room for the outermost points, but no rank 0.
  const edge = Math.min(0.9, 0.05 * (highest - lowest || 1));
  const [low, high] = [lowest - edge, highest + edge];
  const most = 1.6 * Math.max(...points.map((point) => point.cost), 1);
  const turned = (share) => (lowerIsBetter ? share : 1 - share);
  return {
    costs: [0, most],
    values: [low, high],
    x: (cost) => (width * Math.log1p(cost)) / Math.log1p(most),
    cost: (x) => Math.expm1((x / width) * Math.log1p(most)),
    y: (value, height) => height * turned((value - low) / (high - low)),
    value: (y, height) => low + turned(y / height) * (high - low),
  };
}

// The labels of all points and lines, in a chart as high as they need.
function costLabels(points, controls, scales, width, size) {
  for (let height = innerWidth < 640 ? 420 : 520; ; height = Math.round(1.15 * height)) {
    const placed = placeLabels(
      [
        ...points.map((point) => ({
          label: point.label,
          x: scales.x(point.cost),
          y: scales.y(point.value, height),
          weight: point.front ? 600 : 400,
        })),
        ...controls.map((point) => ({
          label: point.label,
          x: width + 7,
          y: scales.y(point.value, height) - size / 2 - 3,
          edge: 1,
          weight: "italic 400",
        })),
      ],
      drawnLines(points, controls, scales, width, height),
      width,
      height,
      size,
    );
    if (placed || height > 3000) return { placed: placed ?? [], height };
  }
}

// The lines of controls and the steps of the front, as thin boxes.
function drawnLines(points, controls, scales, width, height) {
  const box = (x, y, toX, toY) => ({
    left: Math.min(x, toX) - 1,
    right: Math.max(x, toX) + 1,
    top: Math.min(y, toY) - 1,
    bottom: Math.max(y, toY) + 1,
  });
  const front = points
    .filter((point) => point.front)
    .map((point) => [scales.x(point.cost), scales.y(point.value, height)])
    .sort(([one], [two]) => one - two);
  return [
    ...controls.map(({ value }) => scales.y(value, height)).map((y) => box(0, y, width, y)),
    ...front
      .slice(1)
      .flatMap(([x, y], step) => [
        box(front[step][0], front[step][1], x, front[step][1]),
        box(x, front[step][1], x, y),
      ]),
  ];
}

function costSpec(points, front, controls, title, lowerIsBetter, room) {
  // What the axis with its title takes beside the chart.
  const width = Math.max(120, room - 66);
  const size = innerWidth < 640 ? 10.5 : 12;
  const scales = costScales(points, controls, lowerIsBetter, width);
  const { placed, height } = costLabels(points, controls, scales, width, size);
  const labels = placed.map(({ label, box, edge }) => ({
    label,
    cost: scales.cost(box.left),
    value: scales.value((box.top + box.bottom) / 2, height),
    control: Boolean(edge),
  }));
  const leaders = placed
    .filter(({ line }) => line)
    .map(({ line: [x, y, toX, toY] }) => ({
      cost: scales.cost(x),
      value: scales.value(y, height),
      toCost: scales.cost(toX),
      toValue: scales.value(toY, height),
    }));
  const x = {
    field: "cost",
    type: "quantitative",
    scale: { type: "symlog", constant: 1, domain: scales.costs, nice: false },
    axis: {
      title:
        innerWidth < 640
          ? "forward passes per example"
          : "forward passes per example (a backward pass counts as two)",
      values: [0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000],
      format: "~s",
    },
  };
  const y = {
    field: "value",
    type: "quantitative",
    scale: { reverse: lowerIsBetter, zero: false, nice: false, domain: scales.values },
    axis: { title },
  };
  const present = families.filter((family) => points.some((point) => point.family === family));
  const identity = (range) => ({
    field: "family",
    type: "nominal",
    legend: { title: null },
    scale: {
      domain: present,
      range: present.map((family) => range[families.indexOf(family) % range.length]),
    },
  });
  const text = { type: "text", align: "left", baseline: "middle", fontSize: size };
  const onFront = new Set(front.map((point) => point.label));
  const written = (kind, mark) => ({
    data: { values: labels.filter(kind) },
    mark: { ...text, ...mark },
    encoding: { x, y, text: { field: "label" } },
  });
  return {
    width,
    height,
    layer: [
      {
        data: { values: controls },
        mark: { type: "rule", strokeDash: [3, 4], color: colour("--muted"), opacity: 0.7 },
        encoding: { y },
      },
      {
        data: { values: leaders },
        mark: { type: "rule", color: colour("--muted"), opacity: 0.55, strokeWidth: 0.8 },
        encoding: { x, y, x2: { field: "toCost" }, y2: { field: "toValue" } },
      },
      {
        data: { values: front },
        mark: {
          type: "line",
          interpolate: "step-after",
          color: colour("--accent"),
          opacity: 0.6,
          strokeDash: [5, 3],
        },
        encoding: { x, y, order: { field: "cost" } },
      },
      {
        data: { values: points },
        mark: { type: "point", filled: true, size: 70, opacity: 0.95 },
        encoding: {
          x,
          y,
          color: identity(HUES),
          shape: identity(SHAPES),
          tooltip: { field: "tip" },
        },
      },
      written((one) => one.control, { color: colour("--muted"), fontStyle: "italic" }),
      written((one) => !one.control && onFront.has(one.label), { fontWeight: 600 }),
      written((one) => !one.control && !onFront.has(one.label), {}),
    ],
  };
}

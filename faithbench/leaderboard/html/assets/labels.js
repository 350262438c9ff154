// Places for the labels of points, so that none hides another; all in pixels of the chart.

const pen = document.createElement("canvas").getContext("2d");

function textWidth(text, size, weight) {
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

// Where a label may stand, as [pixels to the side, pixels down], the nearest first.
const OFFSETS = [1, -1]
  .flatMap((side) =>
    Array.from({ length: 10 }, (_, far) => far).flatMap((far) =>
      Array.from({ length: 41 }, (_, step) => [side * (9 + 15 * far), 4 * (step - 20)]),
    ),
  )
  .sort(([a, b], [c, d]) => Math.hypot(a, 1.5 * b) - Math.hypot(c, 1.5 * d) || c - a);

const overlap = (one, two) =>
  one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom;

// The line from a point to the near side of its label; none where the label is beside it.
function leader(point, box) {
  const right = box.left > point.x;
  const line = [point.x, point.y, right ? box.left - 2 : box.right + 2, (box.top + box.bottom) / 2];
  return Math.hypot(line[2] - line[0], line[3] - line[1]) > 12 ? line : null;
}

function crosses(line, box) {
  if (!line) return false;
  const [x, y, toX, toY] = line;
  // Sixteen steps are finer than any label is high.
  return Array.from({ length: 15 }, (_, step) => (step + 1) / 16).some((share) => {
    const [atX, atY] = [x + share * (toX - x), y + share * (toY - y)];
    return box.left < atX && atX < box.right && box.top < atY && atY < box.bottom;
  });
}

// Points are {label, x, y, weight}; returned are those with a box for the label and a line to it. A point
// with `edge` has its label to its left. Labels keep off the boxes `kept` where they can. Null
// where the chart is too small for all labels.
function placeLabels(points, kept, width, height, size) {
  const dots = points
    .filter((point) => !point.edge)
    .map(({ x, y }) => ({ x, y, left: x - 6, right: x + 6, top: y - 6, bottom: y + 6 }));
  const placed = [];
  // Edges first: their labels have the least room to move.
  const order = [...points].sort((one, two) => (two.edge ?? 0) - (one.edge ?? 0) || one.y - two.y);
  for (const point of order) {
    const fits = (box) =>
      box.left >= 0 &&
      box.right <= width &&
      box.top >= 0 &&
      box.bottom <= height &&
      isFree(point, box, dots, placed);
    const isClear = (box) => point.edge || !kept.some((line) => overlap(box, line));
    const boxes = labelBoxes(point, size);
    const box = boxes.find((one) => isClear(one) && fits(one)) ?? boxes.find(fits);
    if (!box) return null;
    placed.push({ ...point, box, line: point.edge ? null : leader(point, box) });
  }
  return placed;
}

function labelBoxes(point, size) {
  const wide = textWidth(point.label, size, point.weight) + 2;
  return OFFSETS.filter(([aside]) => !point.edge || aside === -9).map(([aside, down]) => {
    const left = aside > 0 ? point.x + aside : point.x + aside - wide;
    const top = point.y + down - size / 2 - 1;
    return { left, right: left + wide, top, bottom: top + size + 2 };
  });
}

// Whether a label hides no point and no label, and no line to a label goes through another.
function isFree(point, box, dots, placed) {
  const line = leader(point, box);
  return (
    !dots.some((dot) => overlap(box, dot)) &&
    !placed.some((other) => overlap(box, other.box)) &&
    !dots.some((dot) => dot.y !== point.y && crosses(line, dot)) &&
    !placed.some((other) => crosses(line, other.box) || crosses(other.line, box))
  );
}

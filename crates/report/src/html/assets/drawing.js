// Drawing on uPlot's canvas below and above its lines: ranges, bars, stacks, intervals, markers, marks.

// ---- drawing on uPlot's canvas ----

/** One for each of the eight colours: two of them are blue. */
const MARKERS = [
  (pen, x, y, r) => pen.arc(x, y, r, 0, 2 * Math.PI),
  (pen, x, y, r) => pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8),
  (pen, x, y, r) =>
    polygon(pen, [
      [x, y - r * 1.3],
      [x + r * 1.3, y],
      [x, y + r * 1.3],
      [x - r * 1.3, y],
    ]),
  (pen, x, y, r) =>
    polygon(pen, [
      [x, y - r * 1.2],
      [x + r * 1.2, y + r],
      [x - r * 1.2, y + r],
    ]),
  (pen, x, y, r) =>
    polygon(pen, [
      [x, y + r * 1.2],
      [x + r * 1.2, y - r],
      [x - r * 1.2, y - r],
    ]),
  (pen, x, y, r) => polygon(pen, plus(x, y, r * 1.3, 0)),
  (pen, x, y, r) => polygon(pen, plus(x, y, r * 1.4, Math.PI / 4)),
  (pen, x, y, r) =>
    polygon(pen, [
      [x - r * 1.2, y - r],
      [x, y],
      [x + r * 1.2, y - r],
      [x + r * 1.2, y + r],
      [x, y],
      [x - r * 1.2, y + r],
    ]),
];
/** The corners of a plus, turned. */
const plus = (x, y, r, turned) => {
  const thick = r * 0.35;
  const arm = [
    [thick, -thick],
    [r, -thick],
    [r, thick],
  ];
  return [0, 1, 2, 3].flatMap((quarter) => {
    const [cos, sin] = [Math.cos(turned + (quarter * Math.PI) / 2), Math.sin(turned + (quarter * Math.PI) / 2)];
    return arm.map(([dx, dy]) => [x + dx * cos - dy * sin, y + dx * sin + dy * cos]);
  });
};
const polygon = (pen, points) => {
  points.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
};
/** Opacity of series that are drawn faint. */
const FAINT = 0.45;
const ratio = () => window.devicePixelRatio || 1;
const placeX = (u, value) => u.valToPos(value, 'x', true);
const placeY = (u, value, scale) => u.valToPos(value, scale, true);

/** Position of an end of an interval; an unknown upper end is at the top of the plot. */
const placeEnd = (u, one, end, at) => (one[end][at] === null ? u.bbox.top : placeY(u, one[end][at], one.scale));

/** Runs `work` with the pen clipped to the plot, extended by `room` pixels. */
const inside = (u, work, room = 0) => {
  const { ctx: pen, bbox } = u;
  pen.save();
  pen.beginPath();
  pen.rect(bbox.left - room, bbox.top - room, bbox.width + 2 * room, bbox.height + 2 * room);
  pen.clip();
  work(pen, bbox);
  pen.restore();
};
/** True if the visible values are at least `apart` pixels apart. */
const few = (u, one, apart = 13) => {
  const { min, max } = u.scales.x;
  return one.x.filter((x) => x >= min && x <= max).length * apart < u.bbox.width / ratio();
};

/** Draws what is below the lines: ranges, bars, stacks, intervals. */
const drawBelow = (u, panel) =>
  inside(u, (pen, bbox) => {
    for (const mark of panel.marks) if (mark.to !== null) drawRange(u, pen, bbox, mark);
    for (const one of panel.series) {
      if (!one.on) continue;
      if (one.shape === 'bars') drawBars(u, pen, bbox, one, panel);
      if (one.shape === 'stacked') drawStacked(u, pen, one);
      if (one.low && !(few(u, one) || one.shape === 'points')) drawBand(u, pen, one);
    }
  });

const drawRange = (u, pen, bbox, mark) => {
  pen.fillStyle = look[mark.tone];
  pen.globalAlpha = 0.12;
  if (mark.upright) {
    const [from, to] = [placeX(u, mark.at), placeX(u, mark.to)];
    pen.fillRect(from, bbox.top, to - from, bbox.height);
  } else {
    const [from, to] = [placeY(u, mark.at, 'y'), placeY(u, mark.to, 'y')];
    pen.fillRect(bbox.left, from, bbox.width, to - from);
  }
  pen.globalAlpha = 1;
};

const drawBars = (u, pen, bbox, one, panel) => {
  const several = panel.series.filter((other) => other.shape === 'bars').length > 1;
  const ground = one.axis.log || u.scales[one.scale].min > 0 ? bbox.top + bbox.height : placeY(u, 0, one.scale);
  pen.fillStyle = pen.strokeStyle = one.colour();
  pen.lineWidth = ratio();
  barEnds(one, panel.x.log).forEach(([from, to], at) => {
    if (one.y[at] === null) return;
    const [left, right] = [placeX(u, from), placeX(u, to)];
    const gap = right - left > 4 * ratio() ? ratio() / 2 : 0;
    const top = placeY(u, one.y[at], one.scale);
    pen.globalAlpha = several ? 0.45 : 0.85;
    pen.fillRect(left + gap, top, right - left - 2 * gap, ground - top);
    pen.globalAlpha = 1;
    if (several) pen.strokeRect(left + gap, top, right - left - 2 * gap, ground - top);
  });
};

const drawStacked = (u, pen, one) => {
  const at = (x, y) => [placeX(u, x), placeY(u, y, one.scale)];
  const upper = one.x.map((x, index) => at(x, one.top[index]));
  const lower = one.x.map((x, index) => at(x, one.bottom[index])).reverse();
  if (!upper.length) return;
  pen.beginPath();
  polygon(pen, [...upper, ...lower]);
  pen.fillStyle = one.colour();
  pen.globalAlpha = 0.7;
  pen.fill();
  pen.globalAlpha = 1;
  // Lines in the background colour separate layers, so that they differ by more than colour; not if values are dense.
  if (!few(u, one, 3)) return;
  pen.beginPath();
  upper.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.strokeStyle = look.paper;
  pen.lineWidth = 1.2 * ratio();
  pen.stroke();
};

const drawBand = (u, pen, one) => {
  pen.fillStyle = one.colour();
  pen.globalAlpha = 0.2;
  // Draw each piece between two gaps.
  let piece = [];
  const close = () => {
    if (piece.length > 1) {
      const edge = (end) => piece.map((at) => [placeX(u, one.x[at]), placeEnd(u, one, end, at)]);
      pen.beginPath();
      polygon(pen, [...edge('high'), ...edge('low').reverse()]);
      pen.fill();
    }
    piece = [];
  };
  one.x.forEach((_, at) => (one.low[at] === null ? close() : piece.push(at)));
  close();
  pen.globalAlpha = 1;
};

/** Draws what is above the lines: whiskers, markers, marks and their labels. */
const drawAbove = (u, panel) => {
  inside(u, (pen, bbox) => {
    for (const one of panel.series) {
      if (!one.on) continue;
      const sparse = few(u, one) || one.shape === 'points';
      if (one.low && sparse) drawWhiskers(u, pen, one);
    }
    for (const mark of panel.marks) drawMark(u, pen, bbox, mark);
  });
  // The first and the last marker are on the edge of the plot: do not clip them.
  inside(
    u,
    (pen) => {
      for (const one of panel.series)
        if (one.on && (one.shape === 'points' || (one.shape === 'line' && few(u, one)))) drawMarkers(u, pen, one);
    },
    6 * ratio(),
  );
  writeMarks(u, panel);
};

const drawWhiskers = (u, pen, one) => {
  const tip = 3 * ratio();
  pen.strokeStyle = one.colour();
  pen.globalAlpha = one.faint ? FAINT : 1;
  pen.lineWidth = 1.2 * ratio();
  pen.beginPath();
  one.x.forEach((value, at) => {
    if (one.low[at] === null) return;
    const isOpen = one.high[at] === null;
    // Without an upper end, an arrow: a line up to the edge would look like a mark of the plot.
    const top = isOpen ? placeY(u, one.y[at], one.scale) - 18 * ratio() : placeEnd(u, one, 'high', at);
    const [x, low] = [placeX(u, value), placeEnd(u, one, 'low', at)];
    // Omit whiskers that are smaller than the marker.
    if (low - top < 7 * ratio()) return;
    pen.moveTo(x, low);
    pen.lineTo(x, top);
    pen.moveTo(x - tip, low);
    pen.lineTo(x + tip, low);
    const wing = isOpen ? top + 2 * tip : top;
    pen.moveTo(x - tip, wing);
    pen.lineTo(x, top);
    pen.lineTo(x + tip, wing);
  });
  pen.stroke();
  pen.globalAlpha = 1;
};

const drawMarkers = (u, pen, one) => {
  const marker = MARKERS[one.marker % MARKERS.length];
  const size = (one.x.length > 400 ? 1.8 : 3.8) * ratio();
  pen.fillStyle = one.colour();
  pen.strokeStyle = look.paper;
  pen.lineWidth = ratio();
  pen.globalAlpha = one.faint ? FAINT : 1;
  one.x.forEach((x, at) => {
    if (one.y[at] === null) return;
    pen.beginPath();
    marker(pen, placeX(u, x), placeY(u, one.y[at], one.scale), size);
    pen.fill();
    if (one.x.length <= 400) pen.stroke();
  });
  pen.globalAlpha = 1;
};

const drawMark = (u, pen, bbox, mark) => {
  pen.strokeStyle = look[mark.tone];
  pen.lineWidth = 1.2 * ratio();
  pen.setLineDash([5 * ratio(), 3 * ratio()]);
  pen.beginPath();
  for (const value of [mark.at, mark.to].filter((at) => at !== null)) {
    if (mark.upright) {
      const x = Math.round(placeX(u, value));
      pen.moveTo(x, bbox.top);
      pen.lineTo(x, bbox.top + bbox.height);
    } else {
      const y = Math.round(placeY(u, value, 'y'));
      pen.moveTo(bbox.left, y);
      pen.lineTo(bbox.left + bbox.width, y);
    }
  }
  pen.stroke();
  pen.setLineDash([]);
};

const MARK_ROW = 15;
const markRows = (panel) =>
  Math.min(3, panel.marks.filter((mark) => mark.upright && mark.label && !mark.silent).length);

/** The points, and some on the lines between them. */
const along = (points) =>
  points.flatMap(([x, y], at) => {
    const [left, top] = points[Math.max(0, at - 1)];
    const steps = [0.25, 0.5, 0.75].map((part) => [left + (x - left) * part, top + (y - top) * part]);
    return [...(at ? steps : []), [x, y]];
  });

/** Labels of marks, without overlap: vertical ones in rows above the plot, horizontal ones at its edge. */
const writeMarks = (u, panel) => {
  const { ctx: pen, bbox } = u;
  const size = ratio();
  pen.save();
  pen.font = `${12 * size}px ${look.font}`;
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  const taken = [];
  const shown = panel.marks.some((mark) => !mark.upright)
    ? panel.series.filter((one) => one.on && one.x.length < 400)
    : [];
  const points = shown.flatMap((one) => along(one.x.map((x, at) => [placeX(u, x), placeY(u, one.y[at], one.scale)])));
  const lines = panel.marks.filter((mark) => !mark.upright).map((mark) => placeY(u, mark.at, 'y'));
  const free = (box) =>
    taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
  const write = (mark, left, middle, width) => {
    const box = [left - 4 * size, middle - 7 * size, left + width + 4 * size, middle + 7 * size];
    if (!free(box)) return false;
    taken.push(box);
    // The background colour separates the label from lines below it.
    pen.fillStyle = look.paper;
    pen.globalAlpha = 0.85;
    pen.fillRect(box[0] + 2 * size, box[1] + size, width + 4 * size, 12 * size);
    pen.globalAlpha = 1;
    pen.fillStyle = look[mark.tone];
    pen.fillText(mark.label, left, middle);
    return true;
  };
  for (const mark of panel.marks) {
    if (!mark.label || mark.silent) continue;
    const width = pen.measureText(mark.label).width;
    if (mark.upright) {
      const x = placeX(u, mark.at);
      if (x < bbox.left - 1 || x > bbox.left + bbox.width + 1) continue;
      const left = Math.min(Math.max(bbox.left, x - 3 * size), u.ctx.canvas.width - width - 2 * size);
      for (let row = 0; row < markRows(panel); row++) {
        if (write(mark, left, bbox.top - (row + 0.6) * MARK_ROW * size, width)) break;
      }
    } else {
      const y = placeY(u, mark.at, 'y');
      if (y < bbox.top || y > bbox.top + bbox.height) continue;
      const [near, far] = [bbox.left + 6 * size, bbox.left + bbox.width - width - 5 * size];
      const places = [far, near, (near + far) / 2].flatMap((left) => [
        [left, -8],
        [left, 9],
      ]);
      const fits = places.filter(
        ([, off]) => y + off * size > bbox.top + 6 * size && y + off * size < bbox.top + bbox.height - 6 * size,
      );
      const crosses = (off, line) => line !== y && Math.abs(line - y - off * size) < 8 * size;
      const covered = ([left, off]) =>
        lines.filter((line) => crosses(off, line)).length +
        points.filter(
          ([px, py]) =>
            px > left - 8 * size && px < left + width + 8 * size && Math.abs(py - y - off * size) < 11 * size,
        ).length;
      fits
        .map((at) => [covered(at), at])
        .sort((a, b) => a[0] - b[0])
        .some(([, [left, off]]) => write(mark, left, y + off * size, width));
    }
  }
  pen.restore();
};

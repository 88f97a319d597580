// A line chart. Input: a figure and its data. Output: uPlot panels with legends, a cursor that shows values, and zoom;
// all panels of a figure show the same part of their horizontal axis.

// ---- a figure with axes ----

/** Width next to a plot for the labels of its axis. */
const side = (width) => (width < 500 ? 50 : 58);

/** Index of the value of a series nearest to a position, unless it is far away. */
const nearest = (u, row, index, x) => {
  const values = u.data[row];
  const known = (at) => values[at] !== null && values[at] !== undefined;
  if (known(index)) return index;
  let [below, above] = [index, index];
  while (below >= 0 && !known(below)) below--;
  while (above < values.length && !known(above)) above++;
  const distance = (at) =>
    at >= 0 && at < values.length ? Math.abs(u.valToPos(u.data[0][at], 'x') - u.valToPos(x, 'x')) : Infinity;
  const found = distance(below) <= distance(above) ? below : above;
  return distance(found) < u.over.clientWidth * 0.2 ? found : null;
};

const optionsOf = (chart, panel, last, width, height) => {
  const lineOf = uPlot.paths.linear();
  const stepsOf = uPlot.paths.stepped({ align: 1 });
  const pathOf = { line: lineOf, dashed: lineOf, steps: stepsOf };
  const axisOf = (axis, scale, side, more) => ({
    scale,
    side,
    stroke: look.soft,
    font: `12px ${look.font}`,
    gap: 4,
    grid: { stroke: look.grid, width: 1 },
    ticks: { stroke: look.rule, width: 1, size: 4 },
    splits: (u, _, low, high) =>
      ticks(
        axis,
        low,
        high,
        scale === 'x' ? Math.max(3, u.bbox.width / ratio() / 62) : Math.max(4.2, u.bbox.height / ratio() / 30),
      ),
    filter: (u, values) => values,
    values: (u, values) => written(axis, values),
    ...more,
  });
  const axes = [
    axisOf(panel.x, 'x', 2, {
      size: last ? 24 : 8,
      ...(last ? {} : { values: (u, values) => values.map(() => '') }),
    }),
    axisOf(panel.y, 'y', 3, { size: side(width) }),
  ];
  if (panel.right) axes.push(axisOf(panel.right, 'right', 1, { size: side(width), grid: { show: false } }));
  // While uPlot computes scales, the new horizontal scale is available only as the range of its series.
  const scaleOf = (axis, key) => ({
    time: false,
    distr: axis.log ? 3 : 1,
    range: (u) => vertical(panel, key, u.series[0].min, u.series[0].max),
  });
  // The chart sets the visible range: uPlot would round a logarithmic axis to whole decades.
  const kept = () => chart.view;
  const scales = { x: { time: false, auto: false, distr: panel.x.log ? 3 : 1, range: kept }, y: scaleOf(panel.y, 'y') };
  if (panel.right) scales.right = scaleOf(panel.right, 'right');
  // The last label, such as a time with its seconds, is centred below the edge of the plot.
  const right = panel.right ? 0 : chart.anyRight ? side(width) : 34;
  return {
    width,
    height,
    axes,
    scales,
    legend: { show: false },
    padding: [panel.marks.length ? Math.max(8, markRows(panel) * MARK_ROW + 2) : 8, right, 0, 0],
    cursor: {
      y: false,
      drag: { x: true, y: false, dist: 6, setScale: false },
      sync: chart.panels.length > 1 ? { key: chart.id, scales: ['x', null] } : undefined,
      points: { size: 8, width: 1.5, fill: (u, row) => panel.series[row - 1].colour(), stroke: () => look.paper },
      dataIdx: nearest,
      bind: { dblclick: () => () => (chart.reset(), null) },
    },
    series: [
      {},
      ...panel.series.map((one) => ({
        label: one.name,
        scale: one.scale,
        stroke: one.colour(),
        width: one.shape === 'dashed' ? 1.3 : 1.8,
        dash: one.dash,
        show: one.on,
        paths: pathOf[one.shape] || (() => null),
        points: { show: false },
      })),
    ],
    hooks: {
      drawAxes: [(u) => drawBelow(u, panel)],
      draw: [(u) => drawAbove(u, panel)],
      setSelect: [(u) => chart.selected(u)],
      setCursor: [(u) => chart.pointed(u)],
    },
  };
};

/** The legend symbol of a series: its line and marker. */
const swatch = (one) => {
  const NS = 'http://www.w3.org/2000/svg';
  const svg = document.createElementNS(NS, 'svg');
  const add = (name, attributes) => {
    const part = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    svg.append(part);
  };
  svg.setAttribute('viewBox', '0 0 24 12');
  svg.setAttribute('aria-hidden', 'true');
  const colour = one.colour();
  if (one.shape === 'bars' || one.shape === 'stacked')
    add('rect', { x: 6, y: 1, width: 12, height: 10, fill: colour, opacity: 0.8 });
  else if (one.shape !== 'points')
    add('path', {
      d: 'M0 6H24',
      stroke: colour,
      'stroke-width': 2,
      'stroke-dasharray': one.dash.join(' ') || 'none',
    });
  if (one.shape === 'points' || one.shape === 'line') {
    const shapes = [
      'M12 2.8a3.2 3.2 0 1 0 .01 0z',
      'M9 3h6v6H9z',
      'M12 1.5 16.5 6 12 10.5 7.5 6z',
      'M12 2 16 9H8z',
      'M12 10 16 3H8z',
      'M11 1.5h2V5h3.5v2H13v3.5h-2V7H7.5V5H11z',
      'M8.2 3.6 9.6 2.2 12 4.6 14.4 2.2 15.8 3.6 13.4 6 15.8 8.4 14.4 9.8 12 7.4 9.6 9.8 8.2 8.4 10.6 6z',
      'M8 2.5 12 6 16 2.5v7L12 6 8 9.5z',
    ];
    if (one.shape === 'points' || one.marked) add('path', { d: shapes[one.marker % shapes.length], fill: colour });
  }
  return svg;
};

/** A line chart: one panel, or several below each other. */
const axesChart = (figure, data) => {
  const plot = figure.querySelector('.plot');
  const panels = data.panels.map((panel) => ready(panel, data.xs));
  const full = panels.length ? horizontal(panels) : null;
  if (!full) {
    plot.append(element('p', 'none-drawn', 'Nothing was measured that could be drawn here.'));
    return null;
  }
  // A vertical mark has its label in the first panel only.
  const named = new Set();
  for (const mark of panels.flatMap((panel) => panel.marks)) {
    const name = `${mark.upright} ${mark.at} ${mark.label}`;
    mark.silent = mark.upright && named.has(name);
    named.add(name);
  }
  const several = panels.length > 1;
  const tip = element('div', 'tip');
  tip.setAttribute('role', 'status');
  tip.hidden = true;
  let plots = [];
  let active = null;

  const chart = {
    id: figure.id,
    panels,
    view: full,
    anyRight: panels.some((panel) => panel.right),
    /** Zooms all panels to the selected range. */
    selected(u) {
      const { left, width } = u.select;
      if (u !== active || width < 4) return;
      const view = [left, left + width].map((at) => u.posToVal(at, 'x'));
      for (const other of plots) other.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      show(view);
    },
    reset: () => show(full),
    pointed(u) {
      if (u === active) requestAnimationFrame(() => u === active && tell());
    },
  };

  const whole = element('button', '', 'Show all');
  whole.type = 'button';
  whole.hidden = true;
  whole.addEventListener('click', () => {
    chart.reset();
    plot.focus({ preventScroll: true });
  });

  /** Shows a range of the horizontal axis in every panel. */
  const show = (view) => {
    chart.view = view;
    plots.forEach(draw);
    whole.hidden = view[0] <= full[0] && view[1] >= full[1];
  };
  const draw = (u) => u.setScale('x', { min: chart.view[0], max: chart.view[1] });
  // Touch and keys zoom in drawn coordinates, which are logarithms on a logarithmic axis.
  const [drawn, value] = panels[0].x.log ? [Math.log10, (at) => 10 ** at] : [(at) => at, (at) => at];
  const [least, most] = full.map(drawn);
  /** The visible range, in drawn coordinates. */
  const ends = () => chart.view.map(drawn);
  /** Shows the range between two drawn coordinates, moved to within the data. */
  const stretch = (low, high) => {
    const span = high - low;
    if (!(span > (most - least) * 1e-4)) return;
    tip.hidden = true;
    if (span >= most - least) return chart.reset();
    const from = Math.max(least, Math.min(low, most - span));
    show([from, from + span].map(value));
  };

  /** Shows the values at the cursor. */
  const tell = () => {
    const { left, top } = active.cursor;
    if (left === undefined || left < 0) {
      tip.hidden = true;
      return;
    }
    const rows = plots.flatMap((u, of) =>
      panels[of].series
        .filter((one) => one.on)
        .flatMap((one) => {
          const index = u.cursor.idxs?.[one.index + 1];
          return index === null || index === undefined ? [] : [{ one, of, x: u.data[0][index] }];
        }),
    );
    const pointer = active.posToVal(left, 'x');
    const away = (row) => Math.abs(active.valToPos(row.x, 'x') - left);
    const head = rows.length ? rows.reduce((best, row) => (away(row) < away(best) ? row : best)).x : pointer;
    const axis = panels[0].x;
    const prefix = axis.unit === 'moment' || axis.unit === 'nines' || !axis.label ? '' : `${axis.label} `;
    tip.replaceChildren(element('strong', '', prefix + long(axis.unit, head)));
    for (const { one, x } of rows) {
      const at = one.x.indexOf(x);
      const line = element('div', '', '', swatch(one), element('span', '', one.name));
      line.append(element('b', '', long(one.axis.unit, one.y[at])));
      const more = [];
      if (one.low && one.low[at] !== null) {
        const low = long(one.axis.unit, one.low[at]);
        more.push(one.high[at] === null ? `at least ${low}` : `${low} to ${long(one.axis.unit, one.high[at])}`);
      }
      if (one.labels?.[at]) more.push(one.labels[at]);
      if (x !== head) more.push(`at ${long(axis.unit, x)}`);
      if (more.length) line.append(element('small', '', more.join(', ')));
      tip.append(line);
    }
    const marks = panels
      .flatMap((panel) => panel.marks)
      .filter((mark) => mark.upright && !mark.silent && mark.label);
    for (const mark of marks) {
      const [from, to] = [mark.at, mark.to ?? mark.at].map((value) => active.valToPos(value, 'x'));
      if (left > from - 5 && left < to + 5) tip.append(element('div', '', `| ${mark.label}`));
    }
    tip.hidden = false;
    place(tip, plot, active.over, left, several ? 8 : top);
  };

  const dataOf = (panel) => {
    const columns = panel.series.map((one) => [
      one.x,
      one.shape === 'stacked' ? one.y.map((y, at) => (y === null ? null : one.top[at])) : one.y,
    ]);
    return columns.length ? uPlot.join(columns) : [[]];
  };
  const toggle = (index, one) => {
    const on = !one.on;
    const changed = panels[index].series.filter((other) => other.marker === one.marker);
    for (const other of changed) other.on = on;
    stack(panels[index]);
    plots[index].setData(dataOf(panels[index]), false);
    for (const other of changed) plots[index].setSeries(other.index + 1, { show: on });
    draw(plots[index]);
  };
  const build = () => {
    const width = Math.floor(plot.clientWidth);
    if (!width) return;
    plots.forEach((u) => u.destroy());
    plot.replaceChildren();
    plots = panels.map((panel, index) => {
      const last = index === panels.length - 1;
      const labels = element('div', 'labels', '', element('span', '', `↑ ${panel.y.label}`));
      if (panel.series.some((one) => one.marker > 0)) labels.append(legendOf(panel, width, (one) => toggle(index, one)));
      if (panel.right) labels.append(element('span', 'right', `${panel.right.label} ↑`));
      const box = element('div');
      box.setAttribute('role', 'img');
      box.setAttribute('aria-label', `${plot.getAttribute('aria-label')} ${panel.y.label}`);
      plot.append(labels, box);
      const marks = markRows(panel) * MARK_ROW;
      const height = (several ? (printing() ? 84 : 118) : printing() ? 160 : width < 500 ? 230 : 290) + marks + (last ? 24 : 8);
      const u = new uPlot(optionsOf(chart, panel, last, width, height), dataOf(panel), box);
      u.over.addEventListener('mouseenter', () => (active = u));
      u.over.addEventListener('mouseleave', () => {
        if (active === u) active = null;
        tip.hidden = true;
      });
      return u;
    });
    plot.append(element('div', 'labels across', '', whole, element('span', '', horizontalLabel(panels[0].x, full))));
  };
  const bands = panels.some((panel) => panel.series.some((one) => one.low));
  const isOpen = panels.some((panel) => panel.series.some((one) => one.low && one.low.some((low, at) => low !== null && one.high[at] === null)));
  const legend = bands ? `Whiskers and bands are 95 % intervals${isOpen ? '; an arrow: without an upper limit' : ''}. ` : '';
  // Said once, and not on paper.
  const use = document.querySelector('.use')
    ? ''
    : element(
        'span',
        'use',
        matchMedia('(pointer: coarse)').matches
          ? 'Two fingers zoom in and move; a tap tells the figures.'
          : 'Drag to zoom in, double-click to see all again; arrow keys walk along, + and - zoom.',
      );
  plot.after(tip);
  if (legend || use) tip.after(element('p', 'key', legend, use));
  plot.setAttribute('role', 'group');
  walk(plot, (step) => {
    active = active || plots[0];
    if (step === null) {
      active.setCursor({ left: -10, top: -10 });
      tip.hidden = true;
      active = null;
      return;
    }
    const xs = active.data[0];
    const [min, max] = chart.view;
    const [first, last] = [xs.findIndex((x) => x >= min), xs.findLastIndex((x) => x <= max)];
    const now = active.cursor.idx ?? (step > 0 ? first - 1 : last + 1);
    const next = Math.min(last, Math.max(first, now + step));
    active.setCursor({ left: active.valToPos(xs[next], 'x'), top: 10 });
  });
  plot.addEventListener('keydown', (event) => {
    const factor = { '+': 0.5, '=': 0.5, '-': 2 }[event.key];
    if (!factor || event.ctrlKey || event.metaKey) return;
    const [low, high] = ends();
    const at = active?.cursor.left >= 0 ? drawn(active.posToVal(active.cursor.left, 'x')) : (low + high) / 2;
    stretch(at - (at - low) * factor, at + (high - at) * factor);
  });
  pinching(plot, ends, stretch);
  return { build, plot };
};

/** Zoom and pan with two fingers: the points below them stay below them. One finger scrolls the page. */
const pinching = (plot, ends, stretch) => {
  let held = null;
  const fingers = (event) => {
    const box = plot.querySelector('.u-over').getBoundingClientRect();
    return [...event.touches].map((finger) => (finger.clientX - box.left) / box.width);
  };
  plot.addEventListener('touchstart', (event) => {
    const [low, high] = ends();
    held = event.touches.length === 2 ? fingers(event).map((at) => low + at * (high - low)) : null;
  });
  plot.addEventListener(
    'touchmove',
    (event) => {
      if (!held || event.touches.length !== 2) return;
      event.preventDefault();
      const [one, other] = fingers(event);
      const span = (held[1] - held[0]) / (other - one);
      stretch(held[0] - one * span, held[0] + (1 - one) * span);
    },
    { passive: false },
  );
};

/** Label below the horizontal axis; for times, with the day. */
const horizontalLabel = (axis, [from, to]) => {
  if (axis.unit !== 'moment') return `${axis.label} →`;
  const [first, last] = [date(from).slice(0, 10), date(to).slice(0, 10)];
  return `${axis.label}, ${first === last ? first : `${first} to ${last}`} →`;
};

/** Buttons that show and hide the series of a panel. */
const legendOf = (panel, width, toggle) => {
  const box = element('div', 'legend');
  box.setAttribute('role', 'group');
  box.setAttribute('aria-label', 'Series shown');
  for (const one of panel.series) {
    one.marked = one.shape === 'line' && one.x.length * 13 < width;
    if (one.faint) continue;
    const button = element('button', '', '', swatch(one), one.name);
    button.type = 'button';
    const tell = () => button.setAttribute('aria-pressed', String(one.on));
    button.addEventListener('click', () => {
      toggle(one);
      tell();
    });
    tell();
    box.append(button);
  }
  return box;
};

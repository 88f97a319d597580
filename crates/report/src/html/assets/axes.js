// Ranges and ticks of axes. Input: the data of a panel, as `figures.rs` writes it. Output: series ready for drawing,
// ranges, ticks and their labels. Does not touch the document.

// ---- axes ----

const DAY = 86400;
const TIME_STEPS = [
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  3600,
  7200,
  10800,
  21600,
  43200,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  28 * DAY,
];
const isTime = (unit) => unit === 'seconds' || unit === 'moment';

/** The smallest round step with at most `most` multiples between two ends. */
const roundStep = (span, most, unit) => {
  const least = span / Math.max(1, most);
  if (isTime(unit) && least > 0.5) return TIME_STEPS.find((step) => step >= least) || Math.ceil(least / DAY) * DAY;
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((one) => one * power).find((step) => step >= least * 0.999);
};
const multiples = (low, high, step) => {
  const found = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++)
    found.push(index * step);
  return found;
};

/** Positions of at most `most` ticks of an axis. */
const ticks = (axis, low, high, most) => {
  if (!(high > low)) return [low];
  const ends = (axis.ends || []).filter((end) => end >= low * 0.9999 && end <= high * 1.0001);
  // Labels of such ends are short: a quarter more of them fit.
  const stride = Math.ceil(ends.length / (most * 1.25));
  if (ends.length > 2) return ends.filter((_, index) => index % stride === 0);
  if (axis.unit === 'nines') {
    const nines = [0, Math.log10(2), 1, 2, 3, 4, 5, 6, 7, 8, 9];
    const crowded = (high - low) / most > 0.3;
    const each = Math.ceil(((high - low) / most) * 0.8);
    const apart = (value) => (value <= 1 ? !(crowded && value === 0) : (value - 1) % each === 0);
    return nines.filter((value) => value >= low - 1e-9 && value <= high + 1e-9 && apart(value));
  }
  const decades = Math.log10(high / low);
  if (!axis.log || decades < 0.8) return multiples(low, high, roundStep(high - low, most, axis.unit));
  const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const within = (value) => value >= low * 0.9999 && value <= high * 1.0001;
  const every = (mantissas, stride) => {
    const found = [];
    for (let power = first; power <= last; power += stride)
      found.push(...mantissas.map((one) => one * 10 ** power));
    return found.filter(within);
  };
  const choices = [every([1, 2, 5], 1), every([1, 3], 1), every([1], 1), every([1], 2)];
  return choices.find((choice) => choice.length <= most) || every([1], 3);
};

/** Labels of ticks: on a linear axis with one unit prefix for all, and the decimals that the step needs. */
const written = (axis, values) => {
  if (axis.unit === 'nines' || values.length < 2) return values.map((value) => short(axis.unit, value));
  const step = values[1] - values[0];
  if (axis.unit === 'moment') {
    return values.map((value) => {
      const text = date(value);
      if (value % DAY === 0) return `${Number(text.slice(8, 10))} ${MONTHS[Number(text.slice(5, 7)) - 1]}`;
      return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
    });
  }
  if (axis.unit === 'seconds' && step >= 1 && values.at(-1) >= 120) return values.map(clock);
  if (axis.log) return values.map((value) => short(axis.unit, value));
  const greatest = Math.max(...values.map(Math.abs));
  const scales = axis.unit === 'seconds' ? [[1, ' s']] : scalesOf(axis.unit);
  const [factor, name] = scales.findLast(([size]) => greatest >= size * 0.9995) || scales[0];
  const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / factor) + 1e-9)));
  return values.map((value) => (value === 0 ? '0' : (value / factor).toFixed(decimals) + name));
};

/** A range with a margin around its values. */
const padded = (axis, low, high, share) => {
  if (axis.log) {
    const room = Math.max((high / low) ** share, 1.02);
    return [low / room, high * room];
  }
  const room = high > low ? (high - low) * share : Math.abs(high) * 0.1 || 1;
  return [low - room, high + room];
};

// ---- series ----

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [12, 3], [4, 4], [1, 3]];

/** Prepares the data of a panel: values without a logarithm become gaps on a logarithmic axis, series get colours. */
const ready = (panel, xs) => {
  const lines = panel.series.filter((one) => one.shape === 'line').length;
  let next = 0;
  let dashed = 0;
  let above = -1;
  const series = panel.series.map((one, index) => {
    const axis = one.right ? panel.right : panel.y;
    const kept = xs[one.x]
      .map((x, at) => at)
      .filter((at) => xs[one.x][at] !== null && !(panel.x.log && xs[one.x][at] <= 0));
    // A faint series has the colour of the series that it belongs to.
    if (!one.faint) above++;
    const shown = (value) => (value == null || (axis.log && value <= 0) ? null : value);
    const colour = one.colour ?? (one.shape === 'dashed' && dashed++ === 0 ? null : next++);
    return {
      name: one.name,
      shape: one.shape,
      axis,
      scale: one.right ? 'right' : 'y',
      on: true,
      faint: Boolean(one.faint),
      index,
      marker: above,
      colour: () => (colour === null ? look.soft : look.series[colour % 8]),
      dash:
        one.shape === 'dashed'
          ? [5, 4]
          : one.shape === 'line' && lines > 1 && !isTime(panel.x.unit)
            ? DASHES[above % 8]
            : [],
      x: kept.map((at) => xs[one.x][at]),
      y: kept.map((at) => shown(one.y[at])),
      low: one.low ? kept.map((at) => shown(one.low[at])) : null,
      high: one.high ? kept.map((at) => shown(one.high[at])) : null,
      labels: one.labels ? kept.map((at) => one.labels[at]) : null,
    };
  });
  const bars = series.find((one) => one.shape === 'bars');
  const x = bars && panel.x.log ? { ...panel.x, ends: doublings(bars) } : panel.x;
  const ready = { ...panel, x, series };
  stack(ready);
  return ready;
};

/** Position of each stacked series: above the visible ones before it. */
const stack = (panel) => {
  const top = new Map();
  for (const one of panel.series) {
    if (one.shape !== 'stacked') continue;
    one.bottom = one.x.map((x) => top.get(x) || 0);
    one.top = one.y.map((y, at) => one.bottom[at] + (one.on && y !== null ? y : 0));
    if (one.on) one.x.forEach((x, at) => top.set(x, one.top[at]));
  }
};

/** The ends of each bar: halfway to its neighbours. */
const barEnds = (one, log) => {
  const middle = (a, b) => (log ? Math.sqrt(a * b) : (a + b) / 2);
  const beyond = (a, b) => (log ? a * Math.sqrt(a / b) : a + (a - b) / 2);
  const { x } = one;
  if (x.length < 2) return x.map((value) => (log ? [value / 1.3, value * 1.3] : [value - 0.5, value + 0.5]));
  return x.map((value, at) => [
    at > 0 ? middle(x[at - 1], value) : beyond(value, x[1]),
    at < x.length - 1 ? middle(value, x[at + 1]) : beyond(value, x[at - 1]),
  ]);
};

/** The ends of bars each of which ends at twice its begin, as databases count waits; none of others. */
const doublings = (bars) => {
  const ends = barEnds(bars, true);
  const doubles = ends.every(([low, high]) => Math.abs(high / low - 2) < 0.001);
  return doubles ? [ends[0][0], ...ends.map(([, high]) => high)] : [];
};

/** Minimum and maximum on the horizontal axis of all panels. */
const horizontal = (panels) => {
  let [low, high] = [Infinity, -Infinity];
  const take = (value) => {
    if (value !== null && Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  };
  const { x: axis } = panels[0];
  let bars = false;
  for (const panel of panels) {
    for (const one of panel.series) {
      one.x.forEach(take);
      if (one.shape === 'bars') (barEnds(one, axis.log).flat().forEach(take), (bars = true));
    }
  }
  if (!Number.isFinite(low)) return null;
  const marks = panels.flatMap((panel) => panel.marks).filter((mark) => mark.upright);
  const [near, far] = padded(axis, low, high, 0.3);
  marks.forEach((mark) => [mark.at, mark.to].filter((at) => at !== null && at >= near && at <= far).forEach(take));
  (axis.range || []).forEach(take);
  if (low === high) return padded(axis, low, high, 0.05);
  if (bars || isTime(axis.unit) || axis.unit === 'nines') return [low, high];
  const ends = padded(axis, low, high, 0.03);
  return axis.log || low !== 0 ? [axis.log || low < 0 ? ends[0] : Math.max(0, ends[0]), ends[1]] : [0, ends[1]];
};

/** Minimum and maximum of a vertical axis while the horizontal axis shows `from` to `to`. */
const vertical = (panel, scale, from, to) => {
  const axis = scale === 'right' ? panel.right : panel.y;
  let [low, high] = [Infinity, -Infinity];
  const take = (value) => {
    if (value !== null && Number.isFinite(value)) [low, high] = [Math.min(low, value), Math.max(high, value)];
  };
  let grounded = false;
  for (const one of panel.series) {
    if (!one.on || one.scale !== scale) continue;
    grounded ||= one.shape === 'bars' || one.shape === 'stacked';
    one.x.forEach((x, at) => {
      if (x < from || x > to) return;
      take(one.shape === 'stacked' ? one.top[at] : one.y[at]);
      if (one.low) (take(one.low[at]), take(one.high[at]));
    });
  }
  if (!Number.isFinite(low)) [low, high] = axis.range || (axis.log ? [1, 10] : [0, 1]);
  // Include marks that are near the values.
  const [near, far] = axis.log ? [low / 5, high * 5] : [low - (high - low), high + (high - low) * 0.6];
  if (scale === 'y')
    panel.marks
      .filter((mark) => !mark.upright && mark.at >= near && mark.at <= far)
      .forEach((mark) => take(mark.at));
  (axis.range || []).filter((end) => end !== null && !(axis.log && end <= 0)).forEach(take);
  const ends = padded(axis, low, high, 0.06);
  if (axis.log) return ends;
  if (low >= 0 && (grounded || low < high * 0.6)) return [0, ends[1]];
  // Noise of a few percent must not fill the axis.
  return low > 0 ? [Math.min(ends[0], high * 0.75), ends[1]] : ends;
};

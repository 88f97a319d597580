// Draws the charts of a page.
//
// Goes in: the data in the script of each figure, which `figures.rs` writes. Comes out: a drawing in its `.plot`, with
// a legend, a cursor that tells values, and zoom. Text that comes from data is set by `textContent`, never as HTML.
(() => {
  'use strict';

  const root = document.documentElement;

  /** An element with a class, a text and children. */
  const element = (name, className, text, ...children) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    made.append(...children);
    return made;
  };

  // ---- colours: the style sheet has them ----

  let look;
  const readLook = () => {
    const style = getComputedStyle(root);
    const of = (name) => style.getPropertyValue(`--${name}`).trim();
    look = { series: Array.from({ length: 8 }, (_, index) => of(`c${index}`)), font: style.fontFamily };
    for (const name of ['paper', 'ink', 'soft', 'rule', 'grid', 'good', 'plain', 'doubt', 'bad']) look[name] = of(name);
    look.font = getComputedStyle(document.body).fontFamily;
  };

  // ---- figures as people read them: as in unit.rs ----

  const SCALES = {
    number: [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G']],
    microseconds: [[1, ' µs'], [1e3, ' ms'], [1e6, ' s']],
    share: [[0.01, ' %']],
  };
  const scalesOf = (unit) => SCALES[unit] || SCALES.number;
  const SUFFIX = { per_second: '/s', mb_per_second: ' MB/s' };

  const trimmed = (text) => (text.includes('.') ? text.replace(/\.?0+$/, '') : text);
  const significant = (value, digits) => {
    if (!value) return '0';
    const decimals = digits - 1 - Math.floor(Math.log10(Math.abs(value)));
    return trimmed(value.toFixed(Math.min(12, Math.max(0, decimals))));
  };
  const two = (value) => String(value).padStart(2, '0');

  const quantile = (drawn) => {
    const rest = 100 * 10 ** -drawn;
    const decimals = Math.min(9, Math.max(0, 1 - Math.floor(Math.log10(rest))));
    return `p${trimmed((100 - rest).toFixed(decimals))}`;
  };
  const duration = (seconds) => {
    if (Math.abs(seconds) < 120) return `${significant(seconds, 4)} s`;
    const whole = Math.round(seconds);
    const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
    return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  };
  // Seconds are local time of the run already, so they are read as if they were UTC.
  const date = (seconds) => new Date(seconds * 1000).toISOString();
  const moment = (seconds) => date(seconds).slice(0, 19).replace('T', ' ');

  /** In few characters: of the greatest prefix that leaves a digit before the point. */
  const short = (unit, value) => {
    if (unit === 'nines') return quantile(value);
    if (unit === 'seconds') return duration(value);
    if (unit === 'moment') return moment(value);
    const scales = scalesOf(unit);
    const [factor, name] = scales.findLast(([size]) => Math.abs(value) >= size * 0.9995) || scales[0];
    return significant(value / factor, 3) + name;
  };
  /** With its unit, and all digits that say something. */
  const long = (unit, value) => {
    if (unit === 'number' || SUFFIX[unit]) {
      const text = Math.abs(value) < 999.5 ? significant(value, 4) : Math.round(value).toLocaleString('en-US');
      return text + (SUFFIX[unit] || '');
    }
    return short(unit, value);
  };

  // ---- axes ----

  const DAY = 86400;
  const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY];
  const isTime = (unit) => unit === 'seconds' || unit === 'moment';

  /** The step of round figures that puts at most `most` of them between two ends. */
  const roundStep = (span, most, unit) => {
    const least = span / Math.max(1, most);
    if (isTime(unit) && least > 0.5) return TIME_STEPS.find((step) => step >= least) || Math.ceil(least / DAY) * DAY;
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((one) => one * power).find((step) => step >= least * 0.999);
  };
  const multiples = (low, high, step) => {
    const found = [];
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high + step * 1e-9; index++) found.push(index * step);
    return found;
  };

  /** Where an axis has its ticks: at most `most`. */
  const ticks = (axis, low, high, most) => {
    if (!(high > low)) return [low];
    if (axis.unit === 'nines') {
      const nines = [0, Math.log10(2), 1, 2, 3, 4, 5, 6, 7, 8, 9];
      return nines.filter((value) => value >= low - 1e-9 && value <= high + 1e-9);
    }
    const decades = Math.log10(high / low);
    if (!axis.log || decades < 0.8) return multiples(low, high, roundStep(high - low, most, axis.unit));
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const within = (value) => value >= low * 0.9999 && value <= high * 1.0001;
    const every = (mantissas, stride) => {
      const found = [];
      for (let power = first; power <= last; power += stride) found.push(...mantissas.map((one) => one * 10 ** power));
      return found.filter(within);
    };
    const choices = [every([1, 2, 5], 1), every([1, 3], 1), every([1], 1), every([1], 2)];
    return choices.find((choice) => choice.length <= most) || every([1], 3);
  };

  /** What is written at the ticks: one prefix for all of a linear axis, with the decimals that its step needs. */
  const written = (axis, values) => {
    if (axis.unit === 'nines' || values.length < 2) return values.map((value) => short(axis.unit, value));
    const step = values[1] - values[0];
    if (axis.unit === 'moment') {
      return values.map((value) => {
        const text = date(value);
        if (value % DAY === 0) return text.slice(5, 10);
        return step < 60 ? text.slice(11, 19) : text.slice(11, 16);
      });
    }
    if (axis.unit === 'seconds' && step >= 1 && values.at(-1) > 120) return values.map((value) => (value ? duration(value) : '0')).map((text) => text.replace(/ s$/, ' s'));
    if (axis.log) return values.map((value) => short(axis.unit, value));
    const greatest = Math.max(...values.map(Math.abs));
    const scales = axis.unit === 'seconds' ? [[1, ' s']] : scalesOf(axis.unit);
    const [factor, name] = scales.findLast(([size]) => greatest >= size * 0.9995) || scales[0];
    const decimals = Math.max(0, Math.min(9, -Math.floor(Math.log10(step / factor) + 1e-9)));
    return values.map((value) => (value === 0 ? '0' : (value / factor).toFixed(decimals) + name));
  };

  /** Ends with room around what lies between them. */
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

  /** What the data says of a panel, made ready: values that a logarithm cannot show are gaps, colours are given out. */
  const ready = (panel, xs) => {
    const lines = panel.series.filter((one) => one.shape === 'line').length;
    let next = 0;
    let dashed = 0;
    const series = panel.series.map((one, index) => {
      const axis = one.right ? panel.right : panel.y;
      const kept = xs[one.x].map((x, at) => at).filter((at) => xs[one.x][at] !== null && !(panel.x.log && xs[one.x][at] <= 0));
      const shown = (value) => (value == null || (axis.log && value <= 0) ? null : value);
      const colour = one.colour ?? (one.shape === 'dashed' && dashed++ === 0 ? null : next++);
      return {
        name: one.name, shape: one.shape, axis, scale: one.right ? 'right' : 'y', on: true, index,
        colour: () => (colour === null ? look.soft : look.series[colour % 8]),
        dash: one.shape === 'dashed' ? [5, 4] : one.shape === 'line' && lines > 1 && !isTime(panel.x.unit) ? DASHES[index % 8] : [],
        x: kept.map((at) => xs[one.x][at]),
        y: kept.map((at) => shown(one.y[at])),
        low: one.low ? kept.map((at) => shown(one.low[at])) : null,
        high: one.high ? kept.map((at) => shown(one.high[at])) : null,
        labels: one.labels ? kept.map((at) => one.labels[at]) : null,
      };
    });
    const ready = { ...panel, series };
    stack(ready);
    return ready;
  };

  /** Where each stacked series lies: above the shown ones before it. */
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

  /** Least and greatest value on the horizontal axis of all panels. */
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
        if (one.shape === 'bars') barEnds(one, axis.log).flat().forEach(take), (bars = true);
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

  /** Least and greatest value of a vertical axis where the horizontal one shows `from` to `to`. */
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
        if (one.low) take(one.low[at]), take(one.high[at]);
      });
    }
    if (!Number.isFinite(low)) [low, high] = axis.range || (axis.log ? [1, 10] : [0, 1]);
    // A mark that is near is worth showing.
    const [near, far] = axis.log ? [low / 5, high * 5] : [low - (high - low), high + (high - low) * 0.6];
    if (scale === 'y') panel.marks.filter((mark) => !mark.upright && mark.at >= near && mark.at <= far).forEach((mark) => take(mark.at));
    (axis.range || []).filter((end) => end !== null && !(axis.log && end <= 0)).forEach(take);
    const ends = padded(axis, low, high, 0.06);
    if (axis.log) return ends;
    if (low >= 0 && (grounded || low < high * 0.6)) return [0, ends[1]];
    return ends;
  };

  // ---- drawing on uPlot's canvas ----

  const MARKERS = [
    (pen, x, y, r) => pen.arc(x, y, r, 0, 2 * Math.PI),
    (pen, x, y, r) => pen.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8),
    (pen, x, y, r) => polygon(pen, [[x, y - r * 1.3], [x + r * 1.3, y], [x, y + r * 1.3], [x - r * 1.3, y]]),
    (pen, x, y, r) => polygon(pen, [[x, y - r * 1.2], [x + r * 1.2, y + r], [x - r * 1.2, y + r]]),
    (pen, x, y, r) => polygon(pen, [[x, y + r * 1.2], [x + r * 1.2, y - r], [x - r * 1.2, y - r]]),
  ];
  const polygon = (pen, points) => {
    points.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.closePath();
  };
  const ratio = () => window.devicePixelRatio || 1;
  const placeX = (u, value) => u.valToPos(value, 'x', true);
  const placeY = (u, value, scale) => u.valToPos(value, scale, true);

  /** Does something with the pen, kept inside the plot. */
  const inside = (u, work) => {
    const { ctx: pen, bbox } = u;
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    pen.clip();
    work(pen, bbox);
    pen.restore();
  };
  const few = (u, one) => one.x.filter((x) => x >= u.scales.x.min && x <= u.scales.x.max).length * 13 < u.bbox.width / ratio();

  /** What lies below the lines: ranges, bars, stacks, intervals. */
  const drawBelow = (u, panel) => inside(u, (pen, bbox) => {
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
    // The ground shows between two layers, so that they are told apart by more than colour.
    pen.beginPath();
    upper.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.strokeStyle = look.paper;
    pen.lineWidth = 1.2 * ratio();
    pen.stroke();
  };

  const drawBand = (u, pen, one) => {
    pen.fillStyle = one.colour();
    pen.globalAlpha = 0.2;
    // Each piece between two gaps.
    let piece = [];
    const close = () => {
      if (piece.length > 1) {
        const edge = (end) => piece.map((at) => [placeX(u, one.x[at]), placeY(u, one[end][at], one.scale)]);
        pen.beginPath();
        polygon(pen, [...edge('high'), ...edge('low').reverse()]);
        pen.fill();
      }
      piece = [];
    };
    one.x.forEach((_, at) => (one.low[at] === null || one.high[at] === null ? close() : piece.push(at)));
    close();
    pen.globalAlpha = 1;
  };

  /** What lies above the lines: whiskers, markers, marks and their words. */
  const drawAbove = (u, panel) => {
    inside(u, (pen, bbox) => {
      for (const one of panel.series) {
        if (!one.on) continue;
        const sparse = few(u, one) || one.shape === 'points';
        if (one.low && sparse) drawWhiskers(u, pen, one);
        if (one.shape === 'points' || (one.shape === 'line' && sparse)) drawMarkers(u, pen, one);
      }
      for (const mark of panel.marks) drawMark(u, pen, bbox, mark);
    });
    writeMarks(u, panel);
  };

  const drawWhiskers = (u, pen, one) => {
    const tip = 3 * ratio();
    pen.strokeStyle = one.colour();
    pen.lineWidth = 1.2 * ratio();
    pen.beginPath();
    one.x.forEach((value, at) => {
      if (one.low[at] === null || one.high[at] === null) return;
      const [x, low, high] = [placeX(u, value), placeY(u, one.low[at], one.scale), placeY(u, one.high[at], one.scale)];
      // One that is smaller than the marker says nothing.
      if (low - high < 7 * ratio()) return;
      pen.moveTo(x, low);
      pen.lineTo(x, high);
      for (const y of [low, high]) {
        pen.moveTo(x - tip, y);
        pen.lineTo(x + tip, y);
      }
    });
    pen.stroke();
  };

  const drawMarkers = (u, pen, one) => {
    const marker = MARKERS[one.index % MARKERS.length];
    const size = (one.x.length > 400 ? 1.8 : 3.2) * ratio();
    pen.fillStyle = one.colour();
    pen.strokeStyle = look.paper;
    pen.lineWidth = ratio();
    one.x.forEach((x, at) => {
      if (one.y[at] === null) return;
      pen.beginPath();
      marker(pen, placeX(u, x), placeY(u, one.y[at], one.scale), size);
      pen.fill();
      if (one.x.length <= 400) pen.stroke();
    });
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
  const markRows = (panel) => Math.min(3, panel.marks.filter((mark) => mark.upright && mark.label && !mark.silent).length);

  /** The words of marks: of upright ones in rows above the plot, of level ones at its edge, none over another. */
  const writeMarks = (u, panel) => {
    const { ctx: pen, bbox } = u;
    const size = ratio();
    pen.save();
    pen.font = `${11.5 * size}px ${look.font}`;
    pen.textBaseline = 'middle';
    pen.textAlign = 'left';
    const taken = [];
    const free = (box) => taken.every((other) => box[0] > other[2] || box[2] < other[0] || box[1] > other[3] || box[3] < other[1]);
    const write = (mark, left, middle, width) => {
      const box = [left - 4 * size, middle - 7 * size, left + width + 4 * size, middle + 7 * size];
      if (!free(box)) return false;
      taken.push(box);
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
        const right = bbox.left + bbox.width - width - 5 * size;
        const places = [[right, -8], [right, 9], [bbox.left + 6 * size, -8], [bbox.left + 6 * size, 9]];
        const fits = places.filter(([, off]) => y + off * size > bbox.top + 6 * size && y + off * size < bbox.top + bbox.height - 6 * size);
        fits.some(([left, off]) => write(mark, left, y + off * size, width));
      }
    }
    pen.restore();
  };

  // ---- a figure with axes ----

  const SIDE = 58;

  /** The nearest value of a series to a place, unless it is far away. */
  const nearest = (u, row, index, x) => {
    const values = u.data[row];
    const known = (at) => values[at] !== null && values[at] !== undefined;
    if (known(index)) return index;
    let [below, above] = [index, index];
    while (below >= 0 && !known(below)) below--;
    while (above < values.length && !known(above)) above++;
    const distance = (at) => (at >= 0 && at < values.length ? Math.abs(u.valToPos(u.data[0][at], 'x') - u.valToPos(x, 'x')) : Infinity);
    const found = distance(below) <= distance(above) ? below : above;
    return distance(found) < u.over.clientWidth * 0.2 ? found : null;
  };

  const optionsOf = (chart, panel, last, width, height) => {
    const lineOf = uPlot.paths.linear();
    const stepsOf = uPlot.paths.stepped({ align: 1 });
    const pathOf = { line: lineOf, dashed: lineOf, steps: stepsOf };
    const axisOf = (axis, scale, side, more) => ({
      scale, side, stroke: look.soft, font: `11.5px ${look.font}`, gap: 4,
      grid: { stroke: look.grid, width: 1 }, ticks: { stroke: look.rule, width: 1, size: 4 },
      splits: (u, _, low, high) => ticks(axis, low, high, scale === 'x' ? u.bbox.width / ratio() / 74 : u.bbox.height / ratio() / 30),
      filter: (u, values) => values,
      values: (u, values) => written(axis, values),
      ...more,
    });
    const axes = [
      axisOf(panel.x, 'x', 2, { size: last ? 28 : 8, ...(last ? {} : { values: (u, values) => values.map(() => '') }) }),
      axisOf(panel.y, 'y', 3, { size: SIDE }),
    ];
    if (panel.right) axes.push(axisOf(panel.right, 'right', 1, { size: SIDE, grid: { show: false } }));
    const scaleOf = (axis, key) => ({ time: false, distr: axis.log ? 3 : 1, range: (u) => vertical(panel, key, u.scales.x.min, u.scales.x.max) });
    const scales = { x: { time: false, distr: panel.x.log ? 3 : 1 }, y: scaleOf(panel.y, 'y') };
    if (panel.right) scales.right = scaleOf(panel.right, 'right');
    const right = panel.right ? 0 : chart.anyRight ? SIDE : 14;
    return {
      width, height, axes, scales, legend: { show: false },
      padding: [panel.marks.length ? Math.max(8, markRows(panel) * MARK_ROW + 2) : 8, right, 0, 0],
      cursor: {
        y: false, drag: { x: true, y: false, dist: 6 },
        sync: chart.panels.length > 1 ? { key: chart.id, scales: ['x', null] } : undefined,
        points: { size: 8, width: 1.5, fill: (u, row) => panel.series[row - 1].colour(), stroke: () => look.paper },
        dataIdx: nearest,
        bind: { dblclick: () => () => (chart.reset(), null) },
      },
      series: [{}, ...panel.series.map((one) => ({
        label: one.name, scale: one.scale, stroke: one.colour(), width: one.shape === 'dashed' ? 1.3 : 1.8, dash: one.dash, show: one.on,
        paths: pathOf[one.shape] || (() => null), points: { show: false },
      }))],
      hooks: {
        drawAxes: [(u) => drawBelow(u, panel)],
        draw: [(u) => drawAbove(u, panel)],
        setScale: [(u, key) => key === 'x' && chart.zoomed(u)],
        setCursor: [(u) => chart.pointed(u)],
      },
    };
  };

  /** A small picture of a series: its line and marker. */
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
    if (one.shape === 'bars' || one.shape === 'stacked') add('rect', { x: 6, y: 1, width: 12, height: 10, fill: colour, opacity: 0.8 });
    else if (one.shape !== 'points') add('path', { d: 'M0 6H24', stroke: colour, 'stroke-width': 2, 'stroke-dasharray': one.dash.join(' ') || 'none' });
    if (one.shape === 'points' || one.shape === 'line') {
      const shapes = ['M12 2.8a3.2 3.2 0 1 0 .01 0z', 'M9 3h6v6H9z', 'M12 1.5 16.5 6 12 10.5 7.5 6z', 'M12 2 16 9H8z', 'M12 10 16 3H8z'];
      if (one.shape === 'points' || one.marked) add('path', { d: shapes[one.index % shapes.length], fill: colour });
    }
    return svg;
  };

  /** A chart of lines: one panel or several below each other. */
  const axesChart = (figure, data) => {
    const plot = figure.querySelector('.plot');
    const panels = data.panels.map((panel) => ready(panel, data.xs));
    const full = panels.length ? horizontal(panels) : null;
    if (!full) {
      plot.append(element('p', 'none-drawn', 'Nothing was measured that could be drawn here.'));
      return null;
    }
    // What happened at a moment is named in the first panel only.
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
    let busy = false;
    let active = null;

    const chart = {
      id: figure.id, panels, anyRight: panels.some((panel) => panel.right),
      zoomed(u) {
        if (busy) return;
        const { min, max } = u.scales.x;
        busy = true;
        for (const other of plots) if (other !== u && (other.scales.x.min !== min || other.scales.x.max !== max)) other.setScale('x', { min, max });
        busy = false;
      },
      reset() {
        for (const u of plots) u.setScale('x', { min: full[0], max: full[1] });
      },
      pointed(u) {
        if (u === active) requestAnimationFrame(() => u === active && tell());
      },
    };

    /** Says what is at the cursor. */
    const tell = () => {
      const { left, top } = active.cursor;
      if (left === undefined || left < 0) {
        tip.hidden = true;
        return;
      }
      const rows = plots.flatMap((u, of) => panels[of].series.filter((one) => one.on).flatMap((one) => {
        const index = u.cursor.idxs?.[one.index + 1];
        return index === null || index === undefined ? [] : [{ one, of, x: u.data[0][index] }];
      }));
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
        if (one.low && one.low[at] !== null && one.high[at] !== null) more.push(`${long(one.axis.unit, one.low[at])} to ${long(one.axis.unit, one.high[at])}`);
        if (one.labels?.[at]) more.push(one.labels[at]);
        if (x !== head) more.push(`at ${long(axis.unit, x)}`);
        if (more.length) line.append(element('small', '', more.join(', ')));
        tip.append(line);
      }
      const marks = panels.flatMap((panel) => panel.marks).filter((mark) => mark.upright && !mark.silent && mark.label);
      for (const mark of marks) {
        const [from, to] = [mark.at, mark.to ?? mark.at].map((value) => active.valToPos(value, 'x'));
        if (left > from - 5 && left < to + 5) tip.append(element('div', '', `| ${mark.label}`));
      }
      tip.hidden = false;
      place(tip, plot, active.over, left, several ? 8 : top);
    };

    const build = (view) => {
      const width = Math.floor(plot.clientWidth);
      if (!width) return;
      plots.forEach((u) => u.destroy());
      plot.replaceChildren();
      plots = panels.map((panel, index) => {
        const last = index === panels.length - 1;
        const labels = element('div', 'labels', '', element('span', '', `↑ ${panel.y.label}`));
        if (panel.right) labels.append(element('span', '', `${panel.right.label} ↑`));
        const box = element('div');
        plot.append(labels, box);
        const marks = markRows(panel) * MARK_ROW;
        const height = (several ? 118 : width < 500 ? 230 : 290) + marks + (last ? 28 : 8);
        const columns = panel.series.map((one) => [one.x, one.shape === 'stacked' ? one.y.map((y, at) => (y === null ? null : one.top[at])) : one.y]);
        const data = columns.length ? uPlot.join(columns) : [[]];
        const u = new uPlot(optionsOf(chart, panel, last, width, height), data, box);
        u.over.addEventListener('mouseenter', () => (active = u));
        u.over.addEventListener('mouseleave', () => {
          if (active === u) active = null;
          tip.hidden = true;
        });
        u.setScale('x', view || { min: full[0], max: full[1] });
        return u;
      });
      plot.append(element('div', 'labels across', '', element('span', '', horizontalLabel(panels[0].x, full))));
    };
    const legend = legendOf(panels, (panel) => {
      stack(panel);
      const view = plots[0] && { min: plots[0].scales.x.min, max: plots[0].scales.x.max };
      build(view);
    }, () => Math.floor(plot.clientWidth));
    if (legend) plot.before(legend.box);
    const bands = panels.some((panel) => panel.series.some((one) => one.low));
    const hint = `${bands ? 'Whiskers and bands are 95 % intervals. ' : ''}Drag to zoom in, double-click to see all again; arrow keys walk along.`;
    plot.after(tip, element('p', 'hint', hint));
    walk(plot, (step) => {
      active = active || plots[0];
      if (step === null) {
        active.setCursor({ left: -10, top: -10 });
        tip.hidden = true;
        active = null;
        return;
      }
      const xs = active.data[0];
      const now = active.cursor.idx ?? (step > 0 ? -1 : xs.length);
      const next = Math.min(xs.length - 1, Math.max(0, now + step));
      active.setCursor({ left: active.valToPos(xs[next], 'x'), top: 10 });
    });
    return {
      build() {
        const view = plots[0] && { min: plots[0].scales.x.min, max: plots[0].scales.x.max };
        build(view);
        legend?.paint();
      },
      plot,
    };
  };

  /** The label below the horizontal axis; of moments, with the day. */
  const horizontalLabel = (axis, [from, to]) => {
    if (axis.unit !== 'moment') return `${axis.label} →`;
    const [first, last] = [date(from).slice(0, 10), date(to).slice(0, 10)];
    return `${axis.label}, ${first === last ? first : `${first} to ${last}`} →`;
  };

  /** Buttons that show and hide series; none where there is nothing to tell apart. */
  const legendOf = (panels, changed, width) => {
    const all = panels.flatMap((panel) => panel.series.map((one) => ({ panel, one })));
    if (all.length < 2 || panels.every((panel) => panel.series.length < 2)) return null;
    const box = element('div', 'legend');
    box.setAttribute('role', 'group');
    box.setAttribute('aria-label', 'Series shown');
    const buttons = all.filter(({ panel }) => panel.series.length > 1).map(({ panel, one }) => {
      const button = element('button');
      button.type = 'button';
      button.addEventListener('click', () => {
        one.on = !one.on;
        button.setAttribute('aria-pressed', String(one.on));
        changed(panel);
      });
      box.append(button);
      return { button, one };
    });
    const paint = () => {
      for (const { button, one } of buttons) {
        one.marked = one.shape === 'line' && one.x.length * 13 < width();
        button.setAttribute('aria-pressed', String(one.on));
        button.replaceChildren(swatch(one), one.name);
      }
    };
    return { box, paint };
  };

  /** Puts a tip beside a place in `over`, within the plot's width. */
  const place = (tip, plot, over, left, top) => {
    const [outer, inner] = [plot.parentElement.getBoundingClientRect(), over.getBoundingClientRect()];
    const x = inner.left - outer.left + left;
    const room = outer.width - x - 14;
    const beside = room >= tip.offsetWidth ? x + 14 : x - 14 - tip.offsetWidth;
    const at = Math.max(0, Math.min(beside, outer.width - tip.offsetWidth));
    const y = inner.top - outer.top + Math.max(0, Math.min(top + 10, inner.height - tip.offsetHeight));
    tip.style.transform = `translate(${Math.round(at)}px, ${Math.round(y)}px)`;
  };

  /** Lets the keyboard walk along a drawing: `move` is told the steps across and up, or null when it leaves. */
  const walk = (plot, move) => {
    plot.tabIndex = 0;
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    plot.addEventListener('keydown', (event) => {
      const step = steps[event.key];
      if (event.key === 'Escape') move(null);
      if (!step) return;
      event.preventDefault();
      move(step[0], step[1]);
    });
    plot.addEventListener('blur', () => move(null));
  };

  // ---- a field of cells ----

  const heatChart = (figure, data) => {
    const plot = figure.querySelector('.plot');
    const [wide, high] = [data.columns.length, data.rows.length];
    const drawn = (value) => value !== null && !(data.log && value <= 0);
    const values = data.values.flat().filter(drawn);
    if (!values.length) {
      plot.append(element('p', 'none-drawn', 'Nothing was measured that could be drawn here.'));
      return null;
    }
    const scaled = (value) => (data.log ? Math.log(value) : value);
    const [least, most] = [scaled(values.reduce((a, b) => Math.min(a, b))), scaled(values.reduce((a, b) => Math.max(a, b)))];
    const stops = data.scale.map((stop) => stop.match(/\d+/g).map(Number));
    const colourOf = (value) => {
      const place = most > least ? ((scaled(value) - least) / (most - least)) * (stops.length - 1) : (stops.length - 1) / 2;
      const below = Math.min(stops.length - 2, Math.floor(place));
      return stops[below].map((part, index) => part + (stops[below + 1][index] - part) * (place - below));
    };
    // One pixel a cell, painted once; stretched whenever it is drawn.
    const field = element('canvas');
    [field.width, field.height] = [wide, high];
    const pen = field.getContext('2d');
    const image = pen.createImageData(wide, high);
    data.values.forEach((row, y) => row.forEach((value, x) => {
      if (value === null) return;
      const colour = drawn(value) ? colourOf(value) : stops[0];
      image.data.set([...colour, 255], ((high - 1 - y) * wide + x) * 4);
    }));
    pen.putImageData(image, 0, 0);

    const canvas = element('canvas', 'field');
    const tip = element('div', 'tip');
    tip.setAttribute('role', 'status');
    tip.hidden = true;
    const across = element('div', 'labels across', '', element('span', '', `${data.x} →`));
    plot.append(element('div', 'labels', '', element('span', '', `↑ ${data.y}`)), canvas, across);
    plot.after(tip);
    let [area, cell] = [null, null];

    const build = () => {
      const width = Math.floor(plot.clientWidth);
      if (!width) return;
      const height = Math.max(160, Math.min(320, high * 22)) + 24;
      canvas.width = width * ratio();
      canvas.height = height * ratio();
      canvas.style.height = `${height}px`;
      const ink = canvas.getContext('2d');
      ink.scale(ratio(), ratio());
      ink.font = `11.5px ${look.font}`;
      const gutter = Math.ceil(Math.max(...data.rows.map((name) => ink.measureText(name).width), 10)) + 8;
      area = { left: gutter, top: 4, width: width - gutter - 1, height: height - 28 };
      hatch(ink, area);
      ink.imageSmoothingEnabled = false;
      ink.drawImage(field, area.left, area.top, area.width, area.height);
      writeHeads(ink, area, data);
      if (cell) {
        ink.strokeStyle = look.ink;
        ink.lineWidth = 2;
        ink.strokeRect(area.left + (cell[0] * area.width) / wide, area.top + ((high - 1 - cell[1]) * area.height) / high, area.width / wide, area.height / high);
      }
    };
    const tell = (x, y) => {
      const value = data.values[y]?.[x];
      tip.replaceChildren(element('strong', '', value == null ? 'not measured' : `${data.label}: ${long(data.unit, value)}`));
      tip.append(element('div', '', `${data.x} ${data.columns[x]}`), element('div', '', `${data.y} ${data.rows[y]}`));
      tip.hidden = false;
      place(tip, plot, canvas, area.left + ((x + 1) * area.width) / wide, area.top + ((high - 1 - y) * area.height) / high);
    };
    canvas.addEventListener('pointermove', (event) => {
      const x = Math.floor(((event.offsetX - area.left) / area.width) * wide);
      const y = high - 1 - Math.floor(((event.offsetY - area.top) / area.height) * high);
      if (x < 0 || y < 0 || x >= wide || y >= high) tip.hidden = true;
      else tell(x, y);
    });
    canvas.addEventListener('pointerleave', () => (tip.hidden = true));
    walk(plot, (right, up) => {
      if (right === null) {
        tip.hidden = true;
        cell = null;
      } else {
        const [x, y] = cell || [0, 0];
        cell = cell ? [Math.min(wide - 1, Math.max(0, x + right)), Math.min(high - 1, Math.max(0, y + up))] : [0, 0];
        tell(cell[0], cell[1]);
      }
      build();
    });
    return { build, plot };
  };

  /** Hatching, which shows where no cell is painted over it. */
  const hatch = (pen, area) => {
    pen.save();
    pen.beginPath();
    pen.rect(area.left, area.top, area.width, area.height);
    pen.clip();
    pen.strokeStyle = look.rule;
    pen.beginPath();
    for (let x = -area.height; x < area.width; x += 6) {
      pen.moveTo(area.left + x, area.top + area.height);
      pen.lineTo(area.left + x + area.height, area.top);
    }
    pen.stroke();
    pen.restore();
  };

  /** The heads of rows and columns, as many as there is room for. */
  const writeHeads = (pen, area, { columns, rows }) => {
    pen.fillStyle = look.soft;
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    const tall = area.height / rows.length;
    const everyRow = Math.ceil(14 / tall);
    rows.forEach((name, y) => {
      if (y % everyRow === 0) pen.fillText(name, area.left - 5, area.top + area.height - (y + 0.5) * tall);
    });
    pen.textAlign = 'center';
    const wide = area.width / columns.length;
    const everyColumn = Math.ceil((Math.max(...columns.map((name) => pen.measureText(name).width)) + 12) / wide);
    columns.forEach((name, x) => {
      const [middle, half] = [area.left + (x + 0.5) * wide, pen.measureText(name).width / 2];
      const fits = middle + half <= area.left + area.width + 1;
      if (x % everyColumn === 0 && fits) pen.fillText(name, Math.max(middle, area.left + half), area.top + area.height + 13);
    });
  };

  // ---- the page ----

  const charts = [];
  const redraw = () => {
    readLook();
    charts.forEach((chart) => chart.build());
  };

  const drawAll = () => {
    readLook();
    for (const figure of document.querySelectorAll('figure.chart')) {
      const script = figure.querySelector('script[type="application/json"]');
      if (!script) continue;
      const data = JSON.parse(script.textContent);
      const chart = data.kind === 'heat' ? heatChart(figure, data) : axesChart(figure, data);
      if (!chart) continue;
      charts.push(chart);
      chart.build();
      let width = chart.plot.clientWidth;
      new ResizeObserver(() => {
        if (chart.plot.clientWidth === width) return;
        width = chart.plot.clientWidth;
        requestAnimationFrame(() => chart.build());
      }).observe(chart.plot);
    }
  };

  /** The button that changes between light and dark. */
  const theme = () => {
    const button = document.getElementById('theme');
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const now = () => root.dataset.theme || (dark.matches ? 'dark' : 'light');
    const tell = () => (button.textContent = now() === 'dark' ? 'Light' : 'Dark');
    button.hidden = false;
    tell();
    button.addEventListener('click', () => {
      root.dataset.theme = now() === 'dark' ? 'light' : 'dark';
      tell();
      redraw();
    });
    dark.addEventListener('change', () => {
      tell();
      redraw();
    });
    // Paper is light, and narrower than a screen.
    let before;
    window.addEventListener('beforeprint', () => {
      before = root.dataset.theme;
      root.dataset.theme = 'light';
      document.body.style.width = '690px';
      redraw();
    });
    window.addEventListener('afterprint', () => {
      if (before) root.dataset.theme = before;
      else delete root.dataset.theme;
      document.body.style.width = '';
      redraw();
    });
  };

  /** A button at each text that is to be copied. */
  const copying = () => {
    for (const box of document.querySelectorAll('.code')) {
      const button = element('button', '', 'Copy');
      button.type = 'button';
      button.addEventListener('click', async () => {
        const text = box.querySelector('code').textContent;
        try {
          await navigator.clipboard.writeText(text);
          button.textContent = 'Copied';
        } catch {
          // Not allowed for a file in some browsers: it is selected, and the reader copies it.
          getSelection().selectAllChildren(box.querySelector('code'));
          button.textContent = 'Selected';
        }
        setTimeout(() => (button.textContent = 'Copy'), 1500);
      });
      box.classList.add('copyable');
      box.append(button);
    }
  };

  /** Shows in the contents which section is being read. */
  const following = () => {
    const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.removeAttribute('aria-current'));
        links.get(entry.target.id)?.setAttribute('aria-current', 'true');
      }
    }, { rootMargin: '-10% 0px -80% 0px' });
    document.querySelectorAll('main > section').forEach((section) => seen.observe(section));
  };

  theme();
  copying();
  following();
  drawAll();
})();

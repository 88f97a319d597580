// A heat map. Input: a figure and its data. Output: a canvas with a tooltip for values.

// ---- a heat map ----

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
  // Colours span the values, and at least the requested range, so that noise does not look like a pattern.
  const spanned = values.concat(data.range || []);
  const [least, most] = [
    scaled(spanned.reduce((a, b) => Math.min(a, b))),
    scaled(spanned.reduce((a, b) => Math.max(a, b))),
  ];
  const stops = data.scale.map((stop) => stop.match(/\d+/g).map(Number));
  const colourOf = (value) => {
    const place =
      most > least ? ((scaled(value) - least) / (most - least)) * (stops.length - 1) : (stops.length - 1) / 2;
    const below = Math.min(stops.length - 2, Math.floor(place));
    return stops[below].map((part, index) => part + (stops[below + 1][index] - part) * (place - below));
  };
  // One pixel per cell, painted once and scaled whenever it is drawn.
  const field = element('canvas');
  [field.width, field.height] = [wide, high];
  const pen = field.getContext('2d');
  const image = pen.createImageData(wide, high);
  data.values.forEach((row, y) =>
    row.forEach((value, x) => {
      if (value === null) return;
      const colour = drawn(value) ? colourOf(value) : stops[0];
      image.data.set([...colour, 255], ((high - 1 - y) * wide + x) * 4);
    }),
  );
  pen.putImageData(image, 0, 0);

  const canvas = element('canvas', 'field');
  const tip = element('div', 'tip');
  tip.setAttribute('role', 'status');
  tip.hidden = true;
  const across = element('div', 'labels across', '', element('span', '', `${data.x} →`));
  plot.append(element('div', 'labels', '', element('span', '', `${data.downward ? '↓' : '↑'} ${data.y}`)), canvas, across);
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
    ink.font = `12px ${look.font}`;
    const gutter = Math.ceil(Math.max(...data.rows.map((name) => ink.measureText(name).width), 10)) + 8;
    area = { left: gutter, top: 4, width: width - gutter - 1, height: height - 28 };
    hatch(ink, area);
    ink.imageSmoothingEnabled = false;
    ink.drawImage(field, area.left, area.top, area.width, area.height);
    writeHeads(ink, area, data);
    if (cell) {
      ink.strokeStyle = look.ink;
      ink.lineWidth = 2;
      ink.strokeRect(
        area.left + (cell[0] * area.width) / wide,
        area.top + ((high - 1 - cell[1]) * area.height) / high,
        area.width / wide,
        area.height / high,
      );
    }
  };
  const tell = (x, y) => {
    const value = data.values[y]?.[x];
    tip.replaceChildren(
      element('strong', '', value == null ? 'not measured' : `${data.label}: ${long(data.unit, value)}`),
    );
    tip.append(element('div', '', `${data.x} ${data.columns[x]}`), element('div', '', `${data.y} ${data.rows[y]}`));
    tip.hidden = false;
    place(
      tip,
      plot,
      canvas,
      area.left + ((x + 1) * area.width) / wide,
      area.top + ((high - 1 - y) * area.height) / high,
    );
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

/** Hatching, visible where no cell is painted over it. */
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

/** Headings of rows and columns, as many as fit. */
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
  const least = (Math.max(...columns.map((name) => pen.measureText(name).width)) + 14) / wide;
  const everyColumn =
    [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 24, 30, 40, 50, 60].find((stride) => stride >= least) || Math.ceil(least);
  columns.forEach((name, x) => {
    const [middle, half] = [area.left + (x + 0.5) * wide, pen.measureText(name).width / 2];
    const fits = middle + half <= area.left + area.width + 1;
    if (x % everyColumn === 0 && fits)
      pen.fillText(name, Math.max(middle, area.left + half), area.top + area.height + 13);
  });
};

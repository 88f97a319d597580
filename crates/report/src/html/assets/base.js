// Shared by the other parts: elements, colours, formatted figures, tooltips and keyboard navigation.
// The first part of the page's script: `render.rs` joins base, axes, drawing, lines, heat and page into one function.
// Text from data is set with `textContent`, never as HTML.

const root = document.documentElement;

/** Creates an element with a class, a text and children. */
const element = (name, className, text, ...children) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};

// ---- colours, defined in the style sheet ----

let look;
const printing = () => root.classList.contains('printing');
const readLook = () => {
  const style = getComputedStyle(root);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  look = { series: Array.from({ length: 8 }, (_, index) => of(`c${index}`)), font: style.fontFamily };
  for (const name of ['paper', 'ink', 'soft', 'rule', 'grid', 'good', 'plain', 'warning', 'bad'])
    look[name] = of(name);
  look.font = getComputedStyle(document.body).fontFamily;
};

// ---- formatted figures, as in unit.rs ----

const SCALES = {
  number: [
    [1, ''],
    [1e3, 'k'],
    [1e6, 'M'],
    [1e9, 'G'],
  ],
  microseconds: [
    [1, ' µs'],
    [1e3, ' ms'],
    [1e6, ' s'],
  ],
  share: [[0.01, ' %']],
};
const scalesOf = (unit) => SCALES[unit] || SCALES.number;
const SUFFIX = { per_second: '/s', mb_per_second: ' MB/s', mib_per_second: ' MiB/s' };

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
const clock = (seconds) => {
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  if (days) return `${days}d ${two(hours)}:${two(minutes)}`;
  return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
};
const duration = (seconds) => (Math.abs(seconds) < 120 ? `${significant(seconds, 4)} s` : clock(seconds));
// Seconds are already in the local time of the run, so they are formatted as if they were UTC.
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const date = (seconds) => new Date(seconds * 1000).toISOString();
const moment = (seconds) => date(seconds).slice(0, 19).replace('T', ' ');

/** Short form, with the largest unit prefix that leaves a digit before the point. */
const short = (unit, value) => {
  if (unit === 'nines') return quantile(value);
  if (unit === 'seconds') return duration(value);
  if (unit === 'moment') return moment(value);
  const scales = scalesOf(unit);
  const [factor, name] = scales.findLast(([size]) => Math.abs(value) >= size * 0.9995) || scales[0];
  return significant(value / factor, 3) + name;
};
/** Long form, with the unit and no prefix. */
const long = (unit, value) => {
  if (unit === 'number' || SUFFIX[unit]) {
    const text = Math.abs(value) < 99.95 ? significant(value, 3) : Math.round(value).toLocaleString('en-US');
    return text + (SUFFIX[unit] || '');
  }
  return short(unit, value);
};

// ---- tooltips and the keyboard ----

/** Places a tooltip next to a position in `over`, within the plot's width. */
const place = (tip, plot, over, left, top) => {
  const [outer, inner] = [plot.parentElement.getBoundingClientRect(), over.getBoundingClientRect()];
  const x = inner.left - outer.left + left;
  const room = outer.width - x - 14;
  const beside = room >= tip.offsetWidth ? x + 14 : x - 14 - tip.offsetWidth;
  const at = Math.max(0, Math.min(beside, outer.width - tip.offsetWidth));
  const y = inner.top - outer.top + Math.max(0, Math.min(top + 10, inner.height - tip.offsetHeight));
  tip.style.transform = `translate(${Math.round(at)}px, ${Math.round(y)}px)`;
};

/** Keyboard navigation of a drawing: calls `move` with the steps across and up, or null when the focus leaves. */
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

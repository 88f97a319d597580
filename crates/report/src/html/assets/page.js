// The last part of the page's script: draws all charts, and handles theme, printing, copying and the table of contents.

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

/** Button that switches between light and dark. */
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
  // Print with the light theme, at the width of paper, with all that is folded: paper does not open.
  let before, closed;
  window.addEventListener('beforeprint', () => {
    closed = [...document.querySelectorAll('details:not([open]):not(.figures)')];
    closed.forEach((one) => (one.open = true));
    before = root.dataset.theme;
    root.dataset.theme = 'light';
    root.classList.add('printing');
    redraw();
  });
  window.addEventListener('afterprint', () => {
    closed.forEach((one) => (one.open = false));
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    root.classList.remove('printing');
    redraw();
  });
};

/** A copy button at each text that can be copied. */
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
        // Some browsers forbid this for local files: select the text for the reader to copy.
        getSelection().selectAllChildren(box.querySelector('code'));
        button.textContent = 'Selected';
      }
      setTimeout(() => (button.textContent = 'Copy'), 1500);
    });
    box.classList.add('copyable');
    box.append(button);
  }
};

/** Marks the current section in the table of contents. */
const following = () => {
  const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.removeAttribute('aria-current'));
        links.get(entry.target.id)?.setAttribute('aria-current', 'true');
      }
    },
    { rootMargin: '-10% 0px -80% 0px' },
  );
  document.querySelectorAll('main > section').forEach((section) => seen.observe(section));
};

theme();
copying();
following();
drawAll();

'use strict';
const problems = [];
let waiting = 0;

function mark() {
  document.body.dataset.problems = problems.join(' | ');
  document.body.dataset.drawn = waiting === 0 ? 'yes' : 'no';
}

function failed(reason) {
  problems.push(String((reason && reason.message) || reason));
  mark();
}

window.addEventListener('error', (event) => failed(event.message));
window.addEventListener('unhandledrejection', (event) => failed(event.reason));

// Counts what is under way, so that whoever looks at the page knows when it is finished.
async function during(work) {
  waiting += 1;
  mark();
  try {
    return await work();
  } catch (reason) {
    failed(reason);
    return undefined;
  } finally {
    waiting -= 1;
    mark();
  }
}

const read = (id) => JSON.parse(document.getElementById(id).textContent);
const theme = read('theme');
const dark = window.matchMedia('(prefers-color-scheme: dark)').matches;

// Figures are made for paper; in the dark each colour has its own counterpart.
function recolour(value) {
  if (!dark) return value;
  if (typeof value === 'string') return theme.dark[value] || value;
  if (Array.isArray(value)) {
    const numbers = typeof value[0] === 'number' && typeof value[1] !== 'string';
    return numbers ? value : value.map(recolour);
  }
  if (value && typeof value === 'object' && !ArrayBuffer.isView(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, recolour(each)]));
  }
  return value;
}

// On very large screens letters are larger (page.css), and so are the pictures.
const scale = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
const LENGTHS = new Set(['size', 'width', 'height', 'l', 'r', 't', 'b', 'xshift', 'yshift', 'borderpad', 'standoff']);

function sized(value, by, key) {
  if (by === 1) return value;
  if (typeof value === 'number') return LENGTHS.has(key) ? value * by : value;
  if (Array.isArray(value)) {
    return value.length && (typeof value[0] === 'object' || LENGTHS.has(key)) ? value.map((each) => sized(each, by, key)) : value;
  }
  if (value && typeof value === 'object' && !ArrayBuffer.isView(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, sized(each, by, name)]));
  }
  return value;
}

const config = {
  responsive: true,
  displaylogo: false,
  doubleClick: 'autosize',
  // plotly would offer to upload the chart: nothing of a report leaves it.
  plotlyServerURL: '',
  modeBarButtonsToRemove: ['select2d', 'lasso2d', 'autoScale2d', 'sendChartToCloud', 'sendDataToCloud'],
};

async function drawFigure(holder) {
  const figure = sized(recolour(read(holder.dataset.figure)), scale());
  if (holder.clientWidth < 560) {
    Object.assign(figure.layout.margin, {l: 48, r: 8});
  }
  holder.style.height = `${figure.layout.height}px`;
  await Plotly.newPlot(holder, figure.data, figure.layout, config);
}

function draw(holder) {
  if (holder.dataset.done) return;
  holder.dataset.done = '1';
  during(() => (holder.dataset.run ? drawRun(holder) : drawFigure(holder)));
}

function drawShown(root) {
  root.querySelectorAll('.plot').forEach((holder) => {
    const folded = holder.closest('details');
    if (!folded || folded.open) draw(holder);
  });
}

// ---- columns: see packing.py ----------------------------------------------------------------------------------------
async function words(text) {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const count = planes.length / 4;
  const found = new Uint32Array(count);
  let sum = 0;
  for (let i = 0; i < count; i += 1) {
    sum += planes[i] + planes[count + i] * 256 + planes[2 * count + i] * 65536
      + planes[3 * count + i] * 16777216;
    if (sum >= 4294967296) sum -= 4294967296;
    found[i] = sum;
  }
  return found;
}

async function unpack(packed) {
  const values = new Float32Array((await words(packed.values)).buffer);
  return {values, rows: packed.rows ? await words(packed.rows) : null};
}

const rowOf = (column, i) => (column.rows ? column.rows[i] : i);

// Position of the first value whose tick is greater than `tick`.
function after(column, tick) {
  let low = 0;
  let high = column.values.length;
  if (!column.rows) return Math.max(0, Math.min(high, Math.floor(tick) + 1));
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column.rows[middle] > tick) high = middle; else low = middle + 1;
  }
  return low;
}

const span = (column, view) => [
  Math.max(0, after(column, view.first) - 1), Math.min(column.values.length, after(column, view.last) + 1)];

// Positions that show a column: of those behind one pixel the first, the least, the greatest, the first unknown one.
function extremes(column, view) {
  const [start, end] = span(column, view);
  const chosen = [];
  if (end - start <= 4 * view.pixels) {
    for (let i = start; i < end; i += 1) chosen.push(i);
    return chosen;
  }
  for (let pixel = 0; pixel < view.pixels; pixel += 1) {
    const from = start + Math.floor((pixel * (end - start)) / view.pixels);
    const to = start + Math.floor(((pixel + 1) * (end - start)) / view.pixels);
    let least = -1;
    let greatest = -1;
    let unknown = -1;
    for (let i = from; i < to; i += 1) {
      const value = column.values[i];
      if (Number.isNaN(value)) {
        if (unknown < 0) unknown = i;
      } else {
        if (least < 0 || value < column.values[least]) least = i;
        if (greatest < 0 || value > column.values[greatest]) greatest = i;
      }
    }
    const found = [from, least, greatest, unknown].filter((i) => i >= 0).sort((a, b) => a - b);
    found.forEach((i) => { if (chosen[chosen.length - 1] !== i) chosen.push(i); });
  }
  if (chosen[chosen.length - 1] !== end - 1) chosen.push(end - 1);
  return chosen;
}

function valueAt(column, tick) {
  const position = after(column, tick) - 1;
  return position < 0 ? NaN : column.values[position];
}

const plain = (value) => (Number.isFinite(value) ? Number(value.toPrecision(6)) : null);

// ---- what is drawn: see timeline.py ---------------------------------------------------------------------------------
function lineTrace(run, spec, view) {
  const column = run.columns[spec.column];
  const chosen = extremes(column, view);
  const trace = {
    type: 'scatter', mode: 'lines', name: spec.name, connectgaps: false,
    line: {...spec.line, shape: 'hv'},
    x: chosen.map((i) => rowOf(column, i) / run.rate),
    y: chosen.map((i) => plain(column.values[i])),
    hovertemplate: `%{y}${spec.unit ? ` ${spec.unit}` : ''}<extra></extra>`,
  };
  if (spec.bounds) {
    const [lower, upper] = spec.bounds.map((name) => run.columns[name]);
    trace.customdata = chosen.map((i) => [lower, upper].map((each) => plain(valueAt(each, rowOf(column, i)))));
    trace.hovertemplate = 'risk %{y:.4f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<extra></extra>';
  }
  return trace;
}

function filled(name, colour, x, y) {
  return {type: 'scatter', mode: 'lines', name, x, y, fill: 'toself', fillcolor: colour,
    line: {width: 0}, hoverinfo: 'skip'};
}

// The area between two columns, a closed shape for every stretch in which both are known.
function betweenTrace(run, spec, view) {
  const [lower, upper] = [run.columns[spec.lower], run.columns[spec.upper]];
  const rows = new Set();
  [lower, upper].forEach((column) => extremes(column, view).forEach((i) => rows.add(rowOf(column, i))));
  const sorted = [...rows].sort((a, b) => a - b);
  const x = [];
  const y = [];
  let part = [];
  const close = () => {
    const forth = part.flatMap(([from, to, , high]) => [[from, high], [to, high]]);
    const back = part.slice().reverse().flatMap(([from, to, low]) => [[to, low], [from, low]]);
    [...forth, ...back].forEach(([px, py]) => { x.push(px); y.push(py); });
    if (part.length) { x.push(null); y.push(null); }
    part = [];
  };
  sorted.forEach((row, i) => {
    const low = plain(valueAt(lower, row));
    const high = plain(valueAt(upper, row));
    const next = i + 1 < sorted.length ? sorted[i + 1] : row + 1;
    if (low === null || high === null) close();
    else part.push([row / run.rate, next / run.rate, low, high]);
  });
  close();
  return filled('bounds', theme.colours.bounds, x, y);
}

// Ticks of the view in as many parts as there are pixels: [first, end) each.
function parts(run, view) {
  const first = Math.max(0, Math.floor(view.first));
  const end = Math.min(run.count, Math.ceil(view.last) + 1);
  const number = Math.max(1, Math.min(end - first, view.pixels));
  const edge = (i) => first + Math.floor((i * (end - first)) / number);
  return Array.from({length: number}, (_, i) => [edge(i), edge(i + 1)]);
}

function whereTrace(run, spec, view) {
  const {values} = run.columns[spec.column];
  const x = [];
  const y = [];
  let begun = null;
  const close = (tick) => {
    if (begun !== null) {
      x.push(...[begun, begun, tick, tick].map((each) => each / run.rate), null);
      y.push(0, spec.top, spec.top, 0, null);
    }
    begun = null;
  };
  parts(run, view).forEach(([from, to]) => {
    let on = false;
    for (let tick = from; tick < to && !on; tick += 1) on = values[tick] === spec.equals;
    if (on && begun === null) begun = from;
    if (!on) close(from);
    if (to >= Math.min(run.count, Math.ceil(view.last) + 1)) close(to);
  });
  return filled(spec.name, spec.colour, x, y);
}

function lanesTrace(run, spec, view) {
  const {values} = run.columns[spec.column];
  const pieces = parts(run, {...view, pixels: Math.ceil(view.pixels / 1.5)});
  const lanes = spec.table[0].length;
  const z = Array.from({length: lanes}, () => new Array(pieces.length).fill(0));
  pieces.forEach(([from, to], piece) => {
    const seen = new Set();
    for (let tick = from; tick < to; tick += 1) seen.add(values[tick]);
    seen.forEach((position) => {
      const shown = spec.table[position];
      for (let lane = 0; lane < lanes; lane += 1) {
        if (shown[lane] > z[lane][piece]) z[lane][piece] = shown[lane];
      }
    });
  });
  const {lane, unknown, holds, violation} = theme.colours;
  const steps = [lane, unknown, holds, violation];
  return {
    type: 'heatmap', name: spec.column, z, zmin: -0.5, zmax: 3.5, showscale: false, ygap: 2, hoverinfo: 'skip',
    x: [...pieces.map(([from]) => from / run.rate), pieces[pieces.length - 1][1] / run.rate],
    colorscale: steps.flatMap((colour, i) => [[i / 4, colour], [(i + 1) / 4, colour]]),
  };
}

const DRAW = {
  line: lineTrace,
  between: betweenTrace,
  where: whereTrace,
  lanes: lanesTrace,
  static: (run, spec) => spec.trace,
};

// ---- rows over one time axis ----------------------------------------------------------------------------------------
const GAP = 36;
const EDGE = {top: 64, bottom: 52};
const MARK = {font: 11, height: 16, letter: 7, space: 4};
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];

function clock(seconds, step) {
  const digits = step < 1 ? 1 : 0;
  const rest = (seconds % 60).toFixed(digits).padStart(digits ? 4 : 2, '0');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${rest}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, '0')}:${rest}`;
}

const isLong = (run) => run.unit === 's' && run.count / run.rate >= 600;

function timeTicks(run, range, width) {
  const wanted = (range[1] - range[0]) / Math.max(3, width / 90);
  const step = STEPS.find((each) => each >= wanted) || STEPS[STEPS.length - 1];
  const tickvals = [];
  for (let i = Math.ceil(range[0] / step - 1e-9); i * step <= range[1] + 1e-9; i += 1) {
    if (i >= 0) tickvals.push(Number((i * step).toFixed(1)));
  }
  const long = isLong(run);
  const ticktext = tickvals.map((each) => (long ? clock(each, step) : each.toFixed(step < 1 ? 1 : 0)));
  return {tickvals, ticktext};
}

// Names of levels stand beside the picture, or in it above their lines where there is no room. Two that would overlap
// make way for each other: beside it by as much as is missing, in it the lower level's goes to the left of the other.
function marksOf(row, narrow) {
  const marks = (row.marks || []).slice().sort((one, other) => other.at - one.at);
  if (!marks.length) return [];
  const [bottom, top] = row.yaxis.range;
  const apart = ((marks[0].at - marks[marks.length - 1].at) * row.height) / (top - bottom);
  const missing = marks.length > 1 ? Math.max(0, MARK.height - apart) : 0;
  const aside = -(MARK.letter * marks[0].text.length + MARK.space);
  return marks.map((each, i) => ({
    text: each.text, x: 1, y: each.at, font: {size: MARK.font, color: each.colour}, name: 'mark',
    ...(narrow ? {xanchor: 'right', yanchor: 'bottom', ...(i && missing ? {y: marks[0].at, xshift: aside} : {})}
      : {xanchor: 'left', xshift: MARK.space, yanchor: 'middle', yshift: (i ? -missing : missing) / 2}),
  }));
}

function stack(run, holder) {
  const rows = run.rows.filter((row) => row.shown);
  const by = scale();
  const width = holder.clientWidth / by;
  const narrow = width < 620;
  const longest = Math.max(0, ...rows.flatMap((row) => (row.marks || []).map((each) => each.text.length)));
  const inner = rows.reduce((sum, row) => sum + row.height + GAP, -GAP);
  const height = inner + EDGE.top + EDGE.bottom;
  const axis = theme.axis;
  const right = narrow ? 12 : Math.max(64, 2 * MARK.space + MARK.letter * longest);
  const margin = {l: narrow ? 34 : 150, r: right, t: EDGE.top, b: EDGE.bottom, pad: 0};
  const view = {
    first: run.range[0] * run.rate,
    last: run.range[1] * run.rate,
    pixels: Math.max(50, Math.round((width - margin.l - margin.r) * by)),
  };
  const ticks = timeTicks(run, run.range, view.pixels / by);
  const long = isLong(run);
  const layout = {
    ...theme.layout, height, margin, hovermode: 'x', hoversubplots: 'axis', dragmode: 'zoom', annotations: [],
    shapes: cursorLine(run),
    xaxis: {...axis, ...ticks, range: run.range.slice(), anchor: rows.length > 1 ? `y${rows.length}` : 'y',
      title: {text: long ? 'time since the start (h:min:s)' : `${run.unit === 's' ? 'seconds' : run.unit} since the start`, font: {size: 12}},
      showspikes: true, spikemode: 'across', spikethickness: 1, spikedash: 'dot', spikecolor: theme.colours.muted},
    xaxis2: {...axis, ...ticks, range: run.range.slice(), matches: 'x', overlaying: 'x', anchor: 'y', side: 'top',
      showgrid: false},
  };
  const data = [{type: 'scatter', x: [0], y: [null], xaxis: 'x2', yaxis: 'y', hoverinfo: 'skip', showlegend: false}];
  let above = 0;
  rows.forEach((row, index) => {
    const name = index ? `y${index + 1}` : 'y';
    const domain = [Math.max(0, 1 - (above + row.height) / inner), 1 - above / inner];
    above += row.height + GAP;
    const over = narrow && row.long;
    layout[name.replace('y', 'yaxis')] = {...axis, anchor: 'x', domain, automargin: !narrow, ...row.yaxis,
      ...(over ? {showticklabels: false} : {})};
    const text = (note, more) => layout.annotations.push({
      text: note, showarrow: false, xref: 'paper', yref: 'paper', font: {size: 12, color: theme.colours.ink}, ...more});
    // Where there is no room beside the picture, names stand in it.
    if (over) {
      row.yaxis.ticktext.forEach((each, i) => text(each, {
        x: 0, y: row.yaxis.tickvals[i], yref: name, xanchor: 'left', xshift: 3, font: {size: 11, color: theme.colours.ink}}));
    }
    text(row.title, {x: 0, y: domain[1], xanchor: 'left', yanchor: 'bottom', yshift: index ? 1 : 19});
    if (row.note) {
      text(row.note, {x: 0.5, y: (domain[0] + domain[1]) / 2, font: {size: 12, color: theme.colours.ink},
        bgcolor: theme.colours.paper, borderpad: 3});
    }
    marksOf(row, narrow).forEach((each) => text(each.text, {...each, yref: name}));
    row.traces.forEach((spec) => {
      data.push({...DRAW[spec.draw](run, spec, view), xaxis: 'x', yaxis: name, showlegend: false});
    });
  });
  holder.style.height = `${height * by}px`;
  return [sized(data.map(recolour), by), sized(recolour(layout), by)];
}

async function load(run) {
  const wanted = new Set();
  run.rows.filter((row) => row.shown).forEach((row) => row.traces.forEach((spec) => {
    [spec.column, spec.lower, spec.upper, ...(spec.bounds || [])].forEach((name) => name && wanted.add(name));
  }));
  await Promise.all([...wanted].filter((name) => !run.columns[name]).map(async (name) => {
    run.columns[name] = await unpack(run.packed[name]);
  }));
}

async function refresh(holder) {
  await load(holder.run);
  const [data, layout] = stack(holder.run, holder);
  await Plotly.react(holder, data, layout, config);
  tell(holder);
}

const whole = (run) => [0, Math.max(run.count - 1, 1) / run.rate];

async function drawRun(holder) {
  const run = {...read(holder.dataset.figure), columns: {}, at: null};
  run.range = whole(run);
  if (run.opens != null) {
    run.at = run.opens;
    run.range = [Math.max(0, run.opens - 5), Math.min(run.range[1], run.opens + 5)];
  }
  holder.run = run;
  await refresh(holder);
  holder.on('plotly_relayout', (change) => {
    if (!Object.keys(change).some((key) => /^xaxis2?\.(range|autorange)/.test(key))) return;
    const all = change['xaxis.autorange'] || change['xaxis2.autorange'];
    const {range} = holder.layout.xaxis;
    run.range = all ? whole(run) : [Number(range[0]), Number(range[1])];
    if (all) run.at = null;
    during(() => refresh(holder));
  });
  holder.on('plotly_click', ({event}) => {
    const {xaxis} = holder._fullLayout;
    const at = xaxis.p2d(event.clientX - holder.getBoundingClientRect().left - xaxis._offset);
    during(() => moveCursor(holder, at));
  });
  let width = holder.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(holder.clientWidth - width) < 2 || !holder.clientWidth) return;
    width = holder.clientWidth;
    during(() => refresh(holder));
  }).observe(holder);
}

// ---- what can be clicked --------------------------------------------------------------------------------------------
async function jump(button) {
  const holder = document.getElementById(button.dataset.run);
  const folded = holder.closest('details');
  if (folded) folded.open = true;
  draw(holder);
  await settled(() => holder.layout);
  const {run} = holder;
  const [from, to] = [Number(button.dataset.from), Number(button.dataset.to)];
  const around = Math.max(5, (to - from) / 2);
  const end = whole(run)[1];
  run.range = [Math.max(0, from - around), Math.min(end, to + around)];
  run.at = Number(button.dataset.at);
  stepped = holder;
  document.querySelectorAll('tr.here').forEach((row) => row.classList.remove('here'));
  button.closest('tr').classList.add('here');
  await refresh(holder);
  holder.scrollIntoView({block: 'start'});
}

function settled(done) {
  return new Promise((resolve) => {
    const look = () => (done() ? resolve() : requestAnimationFrame(look));
    look();
  });
}

function choose(chips, wanted) {
  const holder = document.getElementById(chips.dataset.run);
  chips.querySelectorAll('input').forEach((box) => {
    if (wanted) box.checked = wanted(box);
    holder.run.rows.forEach((row) => { if (row.signal === box.value) row.shown = box.checked; });
  });
  during(() => refresh(holder));
}

document.addEventListener('change', (event) => {
  const chips = event.target.closest('.chips');
  if (chips) choose(chips, null);
});
document.addEventListener('click', (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  if (button.classList.contains('jump')) during(() => jump(button));
  if (button.dataset.step) step(document.getElementById(button.dataset.of), button.dataset.step);
  const wanted = {none: () => false, all: () => true, deciding: (box) => box.dataset.decides === 'yes'};
  if (button.dataset.choose) choose(button.closest('.chips'), wanted[button.dataset.choose]);
  if (button.dataset.whole) {
    const holder = document.getElementById(button.dataset.whole);
    holder.run.range = whole(holder.run);
    holder.run.at = null;
    during(() => refresh(holder));
  }
});
document.querySelectorAll('details').forEach((each) => each.addEventListener('toggle', () => {
  if (each.open) drawShown(each);
}));
document.querySelectorAll('.tree').forEach((tree) => {
  const drawn = tree.querySelector('svg');
  ['width', 'height'].forEach((each) => drawn.setAttribute(each, drawn.getAttribute(each) * scale()));
  tree.scrollLeft = Number(tree.dataset.root) * scale() - tree.clientWidth / 2;
});

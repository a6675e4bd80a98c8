// ---- the cursor: one moment of a run, what was then, and the keys that move it ---------------------------------------
let stepped = null;

function cursorLine(run) {
  return run.at === null ? [] : [{type: 'line', xref: 'x', yref: 'paper', x0: run.at, x1: run.at, y0: 0, y1: 1,
    line: {color: theme.colours.ink, width: 1.5, dash: 'dot'}}];
}

const sayTime = (run, at) => (isLong(run) ? clock(at, 0.1) : `${at.toFixed(run.unit === 's' ? 2 : 0)} ${run.unit}`);

// What stands on an axis was escaped for plotly.
function plainText(escaped) {
  const holder = document.createElement('textarea');
  holder.innerHTML = escaped;
  return holder.value;
}

const then = (run, spec, tick) => {
  const column = run.columns[spec.column];
  return column ? valueAt(column, tick) : NaN;
};

function sayRisk(run, row, tick) {
  const risk = row.traces.find((spec) => spec.name === 'risk');
  const shown = then(run, risk, tick);
  const why = row.traces.filter((spec) => spec.draw === 'where' && then(run, spec, tick) === spec.equals);
  return [Number.isNaN(shown) ? 'no risk' : shown.toFixed(3), ...why.map((spec) => spec.name)].join(', ');
}

function sayLanes(run, row, tick) {
  const [spec] = row.traces;
  const lanes = spec && spec.table[then(run, spec, tick)];
  if (!lanes) return 'nothing';
  const names = row.yaxis.ticktext.map(plainText);
  const held = names.flatMap((name, i) => (lanes[i] > 1 ? [name] : lanes[i] === 1 ? [`${name}?`] : []));
  return held.join(', ') || 'nothing';
}

function saySignal(run, row, tick) {
  const value = then(run, row.traces[0], tick);
  if (Number.isNaN(value)) return 'unknown or infinite';
  const texts = row.yaxis.ticktext;
  const named = texts && texts[row.yaxis.tickvals.indexOf(value)];
  return named ? plainText(named) : `${Number(value.toPrecision(4))}${row.unit ? ` ${row.unit}` : ''}`;
}

function sayRow(run, row, tick) {
  if (row.key.startsWith('risk:')) return [row.key.slice(5), sayRisk(run, row, tick)];
  if (row.signal) return [row.signal, saySignal(run, row, tick)];
  return [row.key === 'asked' ? 'asked for' : 'state', sayLanes(run, row, tick)];
}

function tell(holder) {
  const {run} = holder;
  const place = document.getElementById(`${holder.id}-readout`);
  place.hidden = run.at === null;
  if (place.hidden) return;
  const tick = Math.round(run.at * run.rate);
  const time = document.createElement('b');
  time.textContent = sayTime(run, run.at);
  place.replaceChildren(time);
  run.rows.filter((row) => row.shown).forEach((row) => {
    const [name, text] = sayRow(run, row, tick);
    const part = document.createElement('span');
    const value = document.createElement('em');
    value.textContent = text;
    part.append(`${name} `, value);
    place.append(part);
  });
}

async function moveCursor(holder, at) {
  const {run} = holder;
  stepped = holder;
  run.at = at === null ? null : Math.min(run.count - 1, Math.max(0, Math.round(at * run.rate))) / run.rate;
  const [from, to] = run.range;
  if (run.at !== null && (run.at < from || run.at > to)) {
    const start = Math.max(0, Math.min(run.at - (to - from) / 2, whole(run)[1] - (to - from)));
    run.range = [start, start + to - from];
    await refresh(holder);
  } else {
    await Plotly.relayout(holder, {shapes: recolour(cursorLine(run))});
    tell(holder);
  }
}

// The table of events knows them all; several may stand at one time.
function neighbour(holder, forward) {
  const buttons = [...document.querySelectorAll('.events button.jump')].filter((each) => each.dataset.run === holder.id);
  const far = forward ? -Infinity : Infinity;
  const at = holder.run.at === null ? far : holder.run.at;
  const half = 0.5 / holder.run.rate;
  const beyond = buttons.filter((each) => (forward ? each.dataset.at > at + half : each.dataset.at < at - half));
  return forward ? beyond[0] : beyond[beyond.length - 1];
}

function step(holder, how) {
  const {run} = holder;
  if (how === 'next' || how === 'previous') {
    const button = neighbour(holder, how === 'next');
    if (button) during(() => jump(button));
  } else if (how === 'none') {
    during(() => moveCursor(holder, null));
  } else {
    const at = run.at === null ? run.range[0] : run.at + (how === 'right' ? 1 : -1) / run.rate;
    during(() => moveCursor(holder, at));
  }
}

const STEPS_OF_KEYS = {ArrowLeft: 'left', ArrowRight: 'right', n: 'next', p: 'previous', Escape: 'none'};

document.addEventListener('keydown', (event) => {
  const how = STEPS_OF_KEYS[event.key];
  if (!how || event.ctrlKey || event.altKey || event.metaKey) return;
  const holder = stepped || [...document.querySelectorAll('.plot[data-run]')].find((each) => each.run);
  if (!holder || !holder.layout) return;
  event.preventDefault();
  step(holder, how);
});

drawShown(document);
mark();

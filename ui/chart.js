// Small charts as SVG: bars that stack two numbers, and lines that leave gaps where there is nothing.
const NS = "http://www.w3.org/2000/svg";
const WIDE = 600;
const TALL = 120;
const MOST = 360;

function make(name, attributes) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

function sheet(label) {
  const svg = make("svg", {
    viewBox: `0 0 ${WIDE} ${TALL}`,
    preserveAspectRatio: "none",
    class: "chart",
    role: "img",
    "aria-label": label,
  });
  svg.append(
    make("line", { x1: 0, x2: WIDE, y1: TALL - 0.5, y2: TALL - 0.5, class: "axis" }),
    make("line", { x1: 0, x2: WIDE, y1: 0.5, y2: 0.5, class: "axis" }),
  );
  return svg;
}

// At most a few hundred points are drawn; more are added up, so that nothing is skipped.
export function thinned(points, most = MOST) {
  const size = Math.ceil(points.length / most);
  if (size <= 1) return points;
  const out = [];
  for (let at = 0; at < points.length; at += size) {
    const part = points.slice(at, at + size);
    const sum = (name) => part.reduce((total, point) => total + point[name], 0);
    const most_ = (name) =>
      part.reduce((high, point) => (point[name] === null ? high : Math.max(high ?? 0, point[name])), null);
    out.push({
      at: part[0].at,
      calls: sum("calls"),
      failed: sum("failed"),
      refused: sum("refused"),
      p50: most_("p50"),
      p95: most_("p95"),
    });
  }
  return out;
}

export function bars(points, whole, bad, label) {
  const svg = sheet(label);
  const high = Math.max(1, ...points.map(whole));
  const step = WIDE / Math.max(points.length, 60);
  points.forEach((point, index) => {
    const x = WIDE - (points.length - index) * step;
    for (const [value, kind] of [
      [whole(point), "bar_"],
      [bad(point), "bad"],
    ]) {
      const tall = (value / high) * (TALL - 4);
      if (tall > 0)
        svg.append(
          make("rect", {
            x: x + step * 0.1,
            width: Math.max(step * 0.8, 0.5),
            y: TALL - tall,
            height: tall,
            class: kind,
          }),
        );
    }
  });
  return [svg, high];
}

function path(points, value, high) {
  const step = WIDE / Math.max(points.length, 60);
  let d = "";
  let pen = "M";
  points.forEach((point, index) => {
    const number = value(point);
    if (number === null) {
      pen = "M";
      return;
    }
    const x = WIDE - (points.length - index) * step;
    d += `${pen}${x.toFixed(1)} ${(TALL - 2 - (number / high) * (TALL - 6)).toFixed(1)}h${step.toFixed(2)}`;
    pen = "L";
  });
  return d;
}

export function lines(points, series, label) {
  const svg = sheet(label);
  const high = Math.max(1e-6, ...points.flatMap((point) => series.map(([value]) => value(point) ?? 0)));
  for (const [value, kind] of series) svg.append(make("path", { d: path(points, value, high), class: kind }));
  return [svg, high];
}

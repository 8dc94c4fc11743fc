/** Singular queries of JSONPath (RFC 9535, section 2.3.5.1), as `crates/model/src/saved_call.rs` reads them (PLAY-7). */
export type Selector = string | number;

const shorthand = /^\.([A-Za-z_\u0080-\u{10ffff}][\w\u0080-\u{10ffff}]*)/u;
const index = /^\[(0|-?[1-9]\d*)\]/;
const quoted = /^\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/su;
const escapes: Record<string, string> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/** The steps of a path; undefined if it is none. */
export function parsePath(text: string): Selector[] | undefined {
  if (!text.startsWith('$')) return undefined;
  const selectors: Selector[] = [];
  let rest = text.slice(1);
  while (rest !== '') {
    const name = shorthand.exec(rest);
    const place = index.exec(rest);
    const member = quoted.exec(rest);
    if (name) selectors.push(name[1] ?? '');
    else if (place) selectors.push(Number(place[1]));
    else if (member) {
      const inner = member[1] ?? member[2] ?? '';
      const bad = /\\[^bfnrt/\\'"]/s.test(inner.replaceAll('\\\\', ''));
      if (bad) return undefined;
      selectors.push(inner.replace(/\\(.)/gs, (_, one: string) => escapes[one] ?? one));
    } else return undefined;
    rest = rest.slice((name ?? place ?? member)?.[0].length);
  }
  return selectors;
}

/** The value at a path; undefined if nothing stands there. */
export function valueAt(value: unknown, path: Selector[]): unknown {
  let here = value;
  for (const selector of path) {
    if (typeof selector === 'number') {
      if (!Array.isArray(here)) return undefined;
      here = here.at(selector);
    } else {
      if (typeof here !== 'object' || here === null || Array.isArray(here)) return undefined;
      here = Object.hasOwn(here, selector) ? (here as Record<string, unknown>)[selector] : undefined;
    }
    if (here === undefined) return undefined;
  }
  return here;
}

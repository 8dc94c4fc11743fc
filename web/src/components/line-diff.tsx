import { type DiffLine, lineDiff } from '../line-diff';
import classes from './line-diff.module.css';

/** Equal lines around a difference that are shown. */
const around = 3;

const signs = { same: ' ', removed: '−', added: '+' } as const;
const words = { same: '', removed: 'Removed: ', added: 'Added: ' } as const;

/** The lines near a difference, each with its number among all, and the number of lines that are left out. */
function shown(lines: DiffLine[]): ({ place: number } & (DiffLine | { gap: number }))[] {
  const near = lines.map((_, place) =>
    lines.slice(Math.max(0, place - around), place + around + 1).some((one) => one.kind !== 'same'),
  );
  const parts: ({ place: number } & (DiffLine | { gap: number }))[] = [];
  lines.forEach((line, place) => {
    const last = parts.at(-1);
    if (near[place]) parts.push({ place, ...line });
    else if (last && 'gap' in last) last.gap += 1;
    else parts.push({ place, gap: 1 });
  });
  return parts;
}

/** The difference of two values, as lines of their JSON. */
export function JsonDiff({ before, after, label }: { before: unknown; after: unknown; label: string }) {
  const text = (value: unknown) => JSON.stringify(value, null, 2) ?? '';
  const lines = lineDiff(text(before), text(after));
  if (lines.every((line) => line.kind === 'same')) return <p role="status">Both are equal.</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must be reachable by keyboard
    <section className={classes.scroll} tabIndex={0} aria-label={label}>
      <ol className={classes.lines}>
        {shown(lines).map((line) =>
          'gap' in line ? (
            <li key={line.place} className={classes.gap}>
              {line.gap === 1 ? '1 equal line' : `${line.gap} equal lines`}
            </li>
          ) : (
            <li key={line.place} className={classes.line} data-kind={line.kind}>
              <span aria-hidden>{signs[line.kind]}</span>
              <span>
                <span className="visually-hidden">{words[line.kind]}</span>
                {line.text}
              </span>
            </li>
          ),
        )}
      </ol>
    </section>
  );
}

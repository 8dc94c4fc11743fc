import { Button } from '@mantine/core';
import { useState } from 'react';
import classes from './numbered-text.module.css';

/** Lines that are shown of a long text: the document of an API has tens of thousands. */
const most = 2000;

/** A text with the numbers of its lines, as an editor shows it. Long lines scroll. */
export function NumberedText({ text, label }: { text: string; label: string }) {
  const [whole, setWhole] = useState(false);
  const lines = text.replace(/\n$/, '').split('\n');
  const isCut = !whole && lines.length > most;
  const shown = isCut ? lines.slice(0, most) : lines;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must be reachable by keyboard */}
      <section className={classes.scroll} tabIndex={0} aria-label={label}>
        <pre className={classes.numbers} aria-hidden>
          {shown.map((_, at) => at + 1).join('\n')}
        </pre>
        <pre className={classes.text}>
          <code>{shown.join('\n')}</code>
        </pre>
      </section>
      {isCut && (
        <Button variant="subtle" mt="xs" onClick={() => setWhole(true)}>
          Show all {lines.length.toLocaleString()} lines
        </Button>
      )}
    </>
  );
}

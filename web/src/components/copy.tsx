import { ActionIcon, Tooltip } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import classes from './copy.module.css';

export function CopyButton({ text, label, className }: { text: string; label: string; className?: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'refused'>('idle');
  useEffect(() => {
    if (state === 'idle') return;
    const timer = window.setTimeout(() => setState('idle'), 2000);
    return () => window.clearTimeout(timer);
  }, [state]);
  const words =
    state === 'copied'
      ? 'Copied'
      : state === 'refused'
        ? 'Copying is blocked. Select the text and copy it'
        : label;
  return (
    <span className={className}>
      <Tooltip label={words}>
        <ActionIcon
          variant="subtle"
          color={state === 'copied' ? 'green' : 'gray'}
          size="lg"
          aria-label={label}
          onClick={() => {
            navigator.clipboard.writeText(text).then(
              () => setState('copied'),
              () => setState('refused'),
            );
          }}
        >
          {state === 'copied' ? <IconCheck size={17} /> : <IconCopy size={17} />}
        </ActionIcon>
      </Tooltip>
      <span className="visually-hidden" aria-live="polite">
        {state === 'idle' ? '' : words}
      </span>
    </span>
  );
}

export function CodeBlock({ code, label, wrap }: { code: string; label: string; wrap?: boolean }) {
  return (
    <div className={classes.block}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a block that scrolls must be reachable by keyboard */}
      <section className={classes.scroll} tabIndex={0} aria-label={label}>
        <pre className={classes.pre} data-wrap={wrap || undefined}>
          <code>{code}</code>
        </pre>
      </section>
      <CopyButton text={code} label={`Copy ${label}`} className={classes.button} />
    </div>
  );
}

export function CopyLine({ text, label }: { text: string; label: string }) {
  return (
    <span className={classes.inline}>
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${label}`} />
    </span>
  );
}

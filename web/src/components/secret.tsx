import { Alert, Button, Group, Stack } from '@mantine/core';
import { useEffect } from 'react';
import { CodeBlock } from './copy';
import { Dialog } from './dialog';

/** Something that is shown only once. */
export interface Shown {
  title: string;
  values: { label: string; value: string }[];
  note?: string;
  /** How it is kept, unless as a digest. */
  kept?: string;
}

/** Only its button closes it: what is lost here cannot be shown again. */
export function SecretDialog({ shown, close }: { shown: Shown | undefined; close: () => void }) {
  useEffect(() => {
    if (!shown) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', ask);
    return () => window.removeEventListener('beforeunload', ask);
  }, [shown]);
  return (
    <Dialog kept opened={shown !== undefined} onClose={close} title={shown?.title ?? ''}>
      <Stack gap="md">
        <Alert color="sea" title="Copy it now">
          It is shown only once. {shown?.kept ?? 'Portolan keeps a digest of it and can’t show it again.'}
        </Alert>
        {shown?.values.map(({ label, value }) => (
          <div key={label}>
            <span>{label}</span>
            <CodeBlock code={value} label={label} wrap />
          </div>
        ))}
        {shown?.note && <span>{shown.note}</span>}
        <Group justify="flex-end">
          <Button onClick={close}>Done</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

import { Alert, Button, Group, Stack } from '@mantine/core';
import { CodeBlock } from './copy';
import { Dialog } from './dialog';

/** Something that is shown this once. */
export interface Shown {
  title: string;
  values: { label: string; value: string }[];
  note?: string;
}

export function SecretDialog({ shown, close }: { shown: Shown | undefined; close: () => void }) {
  return (
    <Dialog opened={shown !== undefined} onClose={close} title={shown?.title ?? ''}>
      <Stack gap="md">
        <Alert color="sea" title="Copy it now">
          It is shown this once. Portolan keeps only what it takes to recognise it.
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

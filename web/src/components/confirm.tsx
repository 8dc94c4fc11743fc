import { Button, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { Dialog } from './dialog';
import { Refused } from './refused';

/** Asks before something that cannot be taken back, or that stops what others use. */
export function Confirm({
  title,
  word,
  keep = 'Cancel',
  opened,
  close,
  busy,
  act,
  error,
  failed,
  children,
}: {
  title: string;
  /** The verb of the button. */
  word: string;
  /** The button that changes nothing. */
  keep?: string;
  opened: boolean;
  close: () => void;
  busy: boolean;
  act: () => void;
  /** Why it could not be done; shown beside the button. */
  error?: unknown;
  /** The heading of that. */
  failed?: string;
  children: ReactNode;
}) {
  return (
    <Dialog opened={opened} onClose={close} title={title}>
      <Stack gap="md">
        <span>{children}</span>
        <Refused error={error} title={failed ?? 'Nothing was changed'} />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {keep}
          </Button>
          <Button color="red" loading={busy} onClick={act}>
            {word}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

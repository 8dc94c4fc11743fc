import { Button, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { Dialog } from './dialog';

/** Asks before something that cannot be taken back. */
export function Confirm({
  title,
  word,
  opened,
  close,
  busy,
  act,
  children,
}: {
  title: string;
  word: string;
  opened: boolean;
  close: () => void;
  busy: boolean;
  act: () => void;
  children: ReactNode;
}) {
  return (
    <Dialog opened={opened} onClose={close} title={title}>
      <Stack gap="md">
        <span>{children}</span>
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Keep
          </Button>
          <Button color="red" loading={busy} onClick={act}>
            {word}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

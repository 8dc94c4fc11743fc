import { Button, Group } from '@mantine/core';
import type { ReactNode } from 'react';
import { toastDone } from './toast';

/** The buttons of a row whose thing can be switched off and on, and deleted. What else it can do comes first. */
export function SwitchAndDelete({
  name,
  enabled,
  busy,
  turn,
  remove,
  children,
}: {
  name: string;
  enabled: boolean;
  /** It is being switched. */
  busy: boolean;
  turn: (enabled: boolean, options: { onSuccess: () => void }) => void;
  remove: () => void;
  children?: ReactNode;
}) {
  return (
    <Group gap={4} justify="flex-end">
      {children}
      <Button
        variant="subtle"
        size="compact-sm"
        aria-label={`${enabled ? 'Disable' : 'Enable'} ${name}`}
        loading={busy}
        onClick={() =>
          turn(!enabled, { onSuccess: () => toastDone(`${name} is ${enabled ? 'disabled' : 'enabled'}.`) })
        }
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button variant="subtle" color="red" size="compact-sm" aria-label={`Delete ${name}`} onClick={remove}>
        Delete
      </Button>
    </Group>
  );
}

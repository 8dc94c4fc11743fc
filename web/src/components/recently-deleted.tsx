import { Alert, Button, Group, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { type DeletedKind, forgetDeleted, useDeleted } from '../deleted';
import { Refused } from './refused';
import { toastDone } from './toast';

/** What was just deleted from this list, with the way back. */
export function RecentlyDeleted({
  ws,
  kind,
  restore,
}: {
  ws: string;
  kind: DeletedKind;
  restore: (id: string) => Promise<unknown>;
}) {
  const things = useDeleted(ws, kind);
  const [busy, setBusy] = useState<string>();
  const [error, setError] = useState<unknown>();
  if (things.length === 0 && !error) return null;

  async function undo(id: string, name: string) {
    setBusy(id);
    setError(undefined);
    try {
      await restore(id);
      toastDone(`“${name}” was restored.`);
      forgetDeleted(id);
    } catch (cause) {
      setError(cause);
    }
    setBusy(undefined);
  }

  return (
    <Stack gap="sm" component="section" aria-label="Recently deleted">
      <Refused error={error} title="It was not restored" />
      {things.map((one) => (
        <Alert key={one.id} color="sea">
          <Group justify="space-between" gap="sm">
            <span>
              “{one.name}” was deleted. It stays in the{' '}
              <Link to="/w/$ws/trash" params={{ ws }}>
                trash
              </Link>{' '}
              for 30 days.
            </span>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`Restore ${one.name}`}
              loading={busy === one.id}
              onClick={() => void undo(one.id, one.name)}
            >
              Restore
            </Button>
          </Group>
        </Alert>
      ))}
    </Stack>
  );
}

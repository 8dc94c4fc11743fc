import { Button, Group, Stack } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { meQuery } from '../api/me';
import { signInPath, useSessionEnded } from '../signed-out';
import { Dialog } from './dialog';

/** A dialog over a page whose session ended. Typed input stays; the person signs in in another tab. */
export function SignedOut() {
  const ended = useSessionEnded();
  const client = useQueryClient();
  useEffect(() => {
    if (!ended) return;
    // Back from the other tab: the first answer of the API takes the dialog away, and the page is read again.
    const look = () => {
      if (document.visibilityState !== 'visible') return;
      client.fetchQuery({ ...meQuery, staleTime: 0 }).then(
        () => void client.invalidateQueries(),
        () => {
          // Still signed out.
        },
      );
    };
    window.addEventListener('focus', look);
    document.addEventListener('visibilitychange', look);
    return () => {
      window.removeEventListener('focus', look);
      document.removeEventListener('visibilitychange', look);
    };
  }, [ended, client]);
  return (
    <Dialog kept opened={ended} onClose={() => {}} title="You were signed out">
      <Stack gap="md">
        <span>
          Your session ended. Sign in again in a new tab, then come back: what you entered here is kept until
          you close this page.
        </span>
        <Group justify="flex-end">
          <Button component="a" href={signInPath()} target="_blank" rel="noopener">
            Sign in again
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}

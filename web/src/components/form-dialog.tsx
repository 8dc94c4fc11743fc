import { Button, Group, Stack } from '@mantine/core';
import type { FormEventHandler, ReactNode, Ref } from 'react';
import { Dialog } from './dialog';
import { Refused } from './refused';

/** A form over the page. It stays while it is sent, and a refusal stands above its fields. */
export function FormDialog({
  title,
  opened,
  leave,
  form,
  busy,
  word,
  ready,
  refusal,
  failed,
  children,
}: {
  title: string;
  opened: boolean;
  leave: () => void;
  /** The form element's own properties. */
  form: { ref: Ref<HTMLFormElement>; onSubmit: FormEventHandler<HTMLFormElement> };
  busy: boolean;
  /** What its button does. */
  word: string;
  /** Whether what it needs is filled in. */
  ready: boolean;
  refusal: unknown;
  /** The heading of a refusal. */
  failed: string;
  children: ReactNode;
}) {
  return (
    <Dialog kept={busy} opened={opened} onClose={leave} title={title}>
      <form {...form} noValidate>
        <Stack gap="md">
          <Refused error={refusal} title={failed} />
          {children}
          <Group justify="flex-end">
            <Button variant="default" disabled={busy} onClick={leave}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={!ready}>
              {word}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}

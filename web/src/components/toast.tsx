import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { confirmPath } from '../api/people';

const closeButtonProps = { 'aria-label': 'Dismiss' };

export function toastDone(message: string) {
  notifications.show({ message, color: 'green', withBorder: true, closeButtonProps });
}

/** What went wrong, with the way on when the person only has to prove who they are. */
function Failure({ error }: { error: unknown }) {
  const path = confirmPath(error);
  return (
    <>
      {error instanceof Error ? error.message : 'Try again.'} {path && <a href={path}>Confirm</a>}
    </>
  );
}

export function toastFailed(error: unknown) {
  notifications.show({
    title: 'That did not work',
    message: <Failure error={error} />,
    color: 'red',
    withBorder: true,
    autoClose: 10_000,
    closeButtonProps,
    role: 'alert',
  });
}

/** A message with the way back. Deletions are done at once and can be undone, so no page asks "are you sure?". */
export function toastUndo(message: string, undo: () => Promise<unknown>, undone: string) {
  const id = notifications.show({
    color: 'sea',
    withBorder: true,
    autoClose: 15_000,
    closeButtonProps,
    message: (
      <Group justify="space-between" wrap="nowrap" gap="md">
        <Text size="sm">{message}</Text>
        <Button
          size="compact-sm"
          variant="light"
          onClick={() => {
            notifications.hide(id);
            undo().then(() => toastDone(undone), toastFailed);
          }}
        >
          Undo
        </Button>
      </Group>
    ),
  });
}

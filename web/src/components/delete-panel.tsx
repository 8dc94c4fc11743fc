import { Button } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { Confirm } from './confirm';
import { Panel } from './page';

/** The end of a settings page: what deleting does, a button, and a question before it happens. */
export function DeletePanel({
  noun,
  name,
  note,
  busy,
  error,
  act,
  children,
}: {
  /** As in "server". */
  noun: string;
  name: string;
  note: string;
  busy: boolean;
  error: unknown;
  act: () => void;
  /** What stops working, for the question. */
  children: ReactNode;
}) {
  const [asking, setAsking] = useState(false);
  return (
    <Panel title={`Delete this ${noun}`} note={note}>
      <Button color="red" variant="light" onClick={() => setAsking(true)}>
        Delete {noun}
      </Button>
      <Confirm
        title={`Delete “${name}”?`}
        word="Delete"
        opened={asking}
        close={() => setAsking(false)}
        busy={busy}
        error={error}
        failed={`The ${noun} was not deleted`}
        act={act}
      >
        {children}
      </Confirm>
    </Panel>
  );
}

import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { Confirm } from './confirm';

/** Whether a value differs from the one that the form began with, or that stood there at the latest of `saves`. */
export function useChanged(value: unknown, saves = 0): boolean {
  const now = JSON.stringify(value);
  const [base, setBase] = useState({ saves, value: now });
  if (base.saves !== saves) {
    setBase({ saves, value: now });
    return false;
  }
  return now !== base.value;
}

/**
 * Asks before a page with changes that were not saved is left: by a link, by Back, by closing the tab. Saving itself
 * navigates with `ignoreBlocker`. `tabs`: the form is gone as soon as another tab of its page is chosen.
 */
export function Unsaved({ when, tabs }: { when: boolean; tabs?: boolean }) {
  const leave = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      when &&
      (current.pathname !== next.pathname ||
        (tabs === true && JSON.stringify(current.search) !== JSON.stringify(next.search))),
    enableBeforeUnload: () => when,
    withResolver: true,
  });
  return (
    <Confirm
      title="Discard unsaved changes?"
      word="Discard"
      keep="Keep editing"
      opened={leave.status === 'blocked'}
      close={() => leave.reset?.()}
      busy={false}
      act={() => leave.proceed?.()}
    >
      You have changes that are not saved. If you leave this page, they are lost.
    </Confirm>
  );
}

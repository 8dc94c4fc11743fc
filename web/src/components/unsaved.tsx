import { useBlocker } from '@tanstack/react-router';
import { Confirm } from './confirm';

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

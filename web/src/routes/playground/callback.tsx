import { IconPlugConnected } from '@tabler/icons-react';
import { createFileRoute } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Empty } from '../../components/page';
import { PlainShell } from '../../components/shell';
import { type Callback, handOver } from '../../mcp/authorize';

export const Route = createFileRoute('/playground/callback')({ component: CallbackPage });

/** Where the authorization server sends the playground's window. It hands the answer over, and closes. */
function CallbackPage() {
  const [taken, setTaken] = useState<boolean>();
  const [answer] = useState(
    () => Object.fromEntries(new URLSearchParams(window.location.search)) as Callback,
  );
  useEffect(() => {
    document.title = 'Playground · Portolan';
    // The code is used once and by its page alone; it need not stay in the address.
    window.history.replaceState(null, '', window.location.pathname);
    void handOver(answer).then((done) => {
      setTaken(done);
      if (done) window.close();
    });
  }, [answer]);
  return (
    <PlainShell>
      <Empty
        page
        icon={<IconPlugConnected size={24} />}
        title={taken === false ? 'No playground is waiting' : 'Back to the playground'}
      >
        {taken === false
          ? 'The page that asked for this sign-in is closed. Open the playground of a server and connect again.'
          : taken
            ? 'You can close this window.'
            : 'One moment…'}
      </Empty>
    </PlainShell>
  );
}

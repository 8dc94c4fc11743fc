import { Alert } from '@mantine/core';
import type { CapturedCall } from '../../../../../captured-call';
import { comparable } from '../../../../../captured-call';
import { JsonDiff } from '../../../../../components/line-diff';
import { TextLink } from '../../../../../components/link-button';
import { Panel } from '../../../../../components/page';
import { McpError } from '../../../../../mcp/messages';
import { useSession } from '../../../../../session';
import type { Run } from './use-run';

/** Where the arguments of the form come from. */
export function ReplayNote({ call }: { call: CapturedCall }) {
  const { workspace } = useSession();
  return (
    <Alert mb="md" color="sea" title="Arguments of a captured call">
      They come from{' '}
      <TextLink underline="always" to="/w/$ws/calls/$id" params={{ ws: workspace.slug, id: call.id }}>
        this call
      </TextLink>
      . A replay is a new call, made as you.
      {call.masked > 0 && ' Replace each •••• first: the values there were not kept.'}
    </Alert>
  );
}

/** Says that revealed content is gone: it lived in the page that was left. */
export function ReplayGone({ call }: { call: string }) {
  const { workspace } = useSession();
  return (
    <Alert color="yellow" data-tone="yellow" title="The captured call is not here any more">
      Revealed content stays in the page’s memory only.{' '}
      <TextLink underline="always" to="/w/$ws/calls/$id" params={{ ws: workspace.slug, id: call }}>
        Reveal it again
      </TextLink>
    </Alert>
  );
}

/** The result of the run, or its error in JSON-RPC; undefined while there is none. */
function ended(run: Run): unknown {
  if (run.state === 'done') return run.result;
  if (run.state !== 'failed' || !(run.error instanceof McpError)) return undefined;
  const { code, message, data } = run.error;
  return { code, message, ...(data !== undefined && { data }) };
}

/** How the answer of a replay differs from the one that was kept. */
export function ReplayDiff({ call, run }: { call: CapturedCall; run: Run }) {
  const after = ended(run);
  if (after === undefined) return null;
  return (
    <Panel
      title="Compared with the captured answer"
      note={
        call.answer === undefined
          ? undefined
          : 'Removed lines are of the captured answer, added ones of this run.'
      }
    >
      {call.answer === undefined ? (
        <p>The captured answer was cut, or there was none. It can’t be compared.</p>
      ) : (
        <JsonDiff
          before={comparable(call.answer)}
          after={comparable(after)}
          label="Difference of the answers"
        />
      )}
    </Panel>
  );
}

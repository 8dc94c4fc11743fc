import { Alert, Button, Group, Stack } from '@mantine/core';
import { IconEye, IconEyeOff, IconTerminal2 } from '@tabler/icons-react';
import { useNavigate } from '@tanstack/react-router';
import type { CallDetail } from '../../../api/calls';
import { type CapturedText, type RevealedContent, useReveal } from '../../../api/captures';
import { handOver, keptValue, outcomeOf } from '../../../captured-call';
import { CodeBlock } from '../../../components/copy';
import { Panel } from '../../../components/page';
import { Refused } from '../../../components/refused';
import { isObject } from '../../../json-schema';
import { useMay, useSession } from '../../../session';
import { formatDateTime } from '../../../time';

/** Arguments and answer of a call, behind a button that is noted in the audit log. */
export function CallContent({ call }: { call: CallDetail }) {
  const { workspace } = useSession();
  const administers = useMay('administer');
  const reveal = useReveal(workspace.slug, call.id);
  if (!administers) return null;
  if (!call.content_until) {
    return (
      <Panel title="Content">
        <p>Nothing is kept of the arguments and the answer of this call.</p>
      </Panel>
    );
  }
  return (
    <Panel
      title="Content"
      note={`Arguments and answer, masked and encrypted. Kept until ${formatDateTime(call.content_until)}.`}
    >
      {reveal.data ? (
        <Revealed call={call} content={reveal.data} hide={reveal.reset} />
      ) : (
        <Stack gap="md" align="flex-start">
          <Button
            leftSection={<IconEye size={16} aria-hidden />}
            loading={reveal.isPending}
            onClick={() => reveal.mutate()}
          >
            Reveal
          </Button>
          <span>The audit log notes that you revealed it.</span>
          <Refused error={reveal.error} title="The content was not revealed" />
        </Stack>
      )}
    </Panel>
  );
}

function Revealed({ call, content, hide }: { call: CallDetail; content: RevealedContent; hide: () => void }) {
  const { workspace } = useSession();
  const calls = useMay('call_tools');
  const navigate = useNavigate();
  const { server_id: server } = call;
  const kept = keptValue(content.arguments);
  const values = content.arguments === undefined ? {} : isObject(kept) ? kept : undefined;

  function openInPlayground() {
    if (!server || !values) return;
    const answer = outcomeOf(keptValue(content.answer));
    const masked = content.arguments?.masked ?? 0;
    handOver({ id: call.id, tool: call.tool_name, arguments: values, masked, answer });
    void navigate({
      to: '/w/$ws/servers/$id/playground',
      params: { ws: workspace.slug, id: server },
      search: { call: call.id },
    });
  }

  return (
    <Stack gap="lg">
      <div role="status">Revealed. The audit log has an entry of it.</div>
      <Kept title="Arguments" text={content.arguments} none="The call had no arguments." />
      <Kept title="Answer" text={content.answer} none="The client got no answer." />
      <Group gap="sm">
        {calls && server && (
          <Button
            disabled={!values}
            leftSection={<IconTerminal2 size={16} aria-hidden />}
            onClick={openInPlayground}
          >
            Open in playground
          </Button>
        )}
        <Button variant="default" leftSection={<IconEyeOff size={16} aria-hidden />} onClick={hide}>
          Hide
        </Button>
      </Group>
      {!values && <span>The arguments were cut, so they can’t be replayed.</span>}
    </Stack>
  );
}

function Kept({ title, text, none }: { title: string; text: CapturedText | undefined; none: string }) {
  const value = keptValue(text);
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      {text === undefined ? (
        <p>{none}</p>
      ) : (
        <Stack gap="sm">
          {text.is_cut && (
            <Alert color="yellow" data-tone="yellow">
              This is the beginning of {text.bytes.toLocaleString()} bytes.
            </Alert>
          )}
          {text.masked > 0 && (
            <span>
              {text.masked === 1 ? '1 place was' : `${text.masked} places were`} masked before the text was
              kept.
            </span>
          )}
          <CodeBlock
            code={value === undefined ? text.text : JSON.stringify(value, null, 2)}
            label={title.toLowerCase()}
            wrap
          />
        </Stack>
      )}
    </section>
  );
}

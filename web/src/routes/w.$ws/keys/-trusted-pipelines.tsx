import { Button, Group } from '@mantine/core';
import { IconGitBranch, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import {
  type TrustedPipeline,
  trustedPipelinesQuery,
  useDeleteTrustedPipeline,
} from '../../../api/trusted-pipelines';
import { Ago } from '../../../components/ago';
import { Tag } from '../../../components/badges';
import { Confirm } from '../../../components/confirm';
import { HelpLink } from '../../../components/help-link';
import { Empty, Loaded, Panel } from '../../../components/page';
import { cell, Table } from '../../../components/table';
import { toastDone } from '../../../components/toast';
import { PipelineDialog } from './-pipeline-dialog';

type Asked = { what: 'change' | 'delete'; pipeline: TrustedPipeline } | { what: 'new' };

/** CI jobs that get a token of the workspace without a stored secret. */
export function TrustedPipelines({ ws }: { ws: string }) {
  const pipelines = useQuery(trustedPipelinesQuery(ws));
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  return (
    <Panel
      title="Trusted pipelines"
      flush
      note={
        <>
          Jobs of a CI system get an access token for some minutes, without a stored secret.{' '}
          <HelpLink to="api#tokens-of-a-pipeline">Learn more</HelpLink>
        </>
      }
      aside={
        <Button
          size="compact-sm"
          variant="default"
          leftSection={<IconPlus size={15} />}
          onClick={() => setAsked({ what: 'new' })}
        >
          Trust a pipeline
        </Button>
      }
    >
      <Loaded query={pipelines}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconGitBranch size={24} />} title="No trusted pipelines">
              Trust the jobs of a repository, and its pipeline needs no secret of this workspace.
            </Empty>
          ) : (
            <PipelineTable items={items} ask={setAsked} />
          )
        }
      </Loaded>
      <PipelineDialog
        ws={ws}
        pipeline={asked?.what === 'change' ? asked.pipeline : undefined}
        opened={asked?.what === 'new' || asked?.what === 'change'}
        close={close}
      />
      <Deletion ws={ws} pipeline={asked?.what === 'delete' ? asked.pipeline : undefined} close={close} />
    </Panel>
  );
}

function PipelineTable({ items, ask }: { items: TrustedPipeline[]; ask: (asked: Asked) => void }) {
  return (
    <Table
      label="Trusted pipelines"
      head={
        <>
          <th>Pipeline</th>
          <th>Jobs</th>
          <th>Access</th>
          <th>Last used</th>
          <th>
            <span className="visually-hidden">Actions</span>
          </th>
        </>
      }
    >
      {items.map((pipeline) => (
        <tr key={pipeline.id}>
          <td data-wide>
            <span className={cell.main}>{pipeline.name}</span>
            <div className={cell.sub}>{pipeline.issuer}</div>
          </td>
          <td data-wide>
            <Conditions pipeline={pipeline} />
          </td>
          <td data-wide>
            {pipeline.scopes.join(', ')} <Tag>{pipeline.role}</Tag>
            <div className={cell.sub}>for {pipeline.minutes} minutes</div>
          </td>
          <td data-label="Last used">
            {pipeline.last_used_at ? <Ago at={pipeline.last_used_at} /> : 'never'}
          </td>
          <td data-align="right">
            <Group gap="xs" justify="flex-end">
              <Button
                variant="subtle"
                size="compact-sm"
                aria-label={`Change ${pipeline.name}`}
                onClick={() => ask({ what: 'change', pipeline })}
              >
                Change
              </Button>
              <Button
                variant="subtle"
                color="red"
                size="compact-sm"
                aria-label={`Delete ${pipeline.name}`}
                onClick={() => ask({ what: 'delete', pipeline })}
              >
                Delete
              </Button>
            </Group>
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Which jobs are admitted, and why others were refused. */
function Conditions({ pipeline }: { pipeline: TrustedPipeline }) {
  return (
    <>
      <code>{pipeline.subject}</code>
      {Object.entries(pipeline.claims).map(([name, value]) => (
        <div key={name} className={cell.sub}>
          <code>
            {name} = {value}
          </code>
        </div>
      ))}
      {pipeline.refusals.map(({ reason, message, seen, times, last_at }) => (
        <div key={reason} className={cell.sub}>
          Refused {times === 1 ? 'once' : `${times} times`}, last <Ago at={last_at} />: {message}{' '}
          {seen && <code>{seen}</code>}
        </div>
      ))}
    </>
  );
}

function Deletion({
  ws,
  pipeline,
  close,
}: {
  ws: string;
  pipeline: TrustedPipeline | undefined;
  close: () => void;
}) {
  const remove = useDeleteTrustedPipeline(ws);
  const leave = () => {
    remove.reset();
    close();
  };
  return (
    <Confirm
      title="Delete this trusted pipeline?"
      word="Delete"
      opened={pipeline !== undefined}
      close={leave}
      busy={remove.isPending}
      error={remove.error}
      failed="The trusted pipeline was not deleted"
      act={() => {
        if (!pipeline) return;
        remove.mutate(pipeline.id, {
          onSuccess: () => {
            toastDone(`${pipeline.name} was deleted.`);
            leave();
          },
        });
      }}
    >
      Jobs of {pipeline?.name} get no more tokens, and the tokens that they have are refused from their next
      request on. This can’t be undone.
    </Confirm>
  );
}

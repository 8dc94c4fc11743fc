import { Alert, Group, Stack, Switch, Tabs } from '@mantine/core';
import { IconPencil } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { type Tool, toolQuery, useUpdateTool } from '../../../../api/tools';
import { Method, Tag } from '../../../../components/badges';
import { InlineCode } from '../../../../components/inline-code';
import { LinkButton } from '../../../../components/link-button';
import { Loaded, Page, Panel } from '../../../../components/page';
import { SchemaPanel } from '../../../../components/schema-tree';
import { toastFailed } from '../../../../components/toast';
import { text } from '../../../../search';
import { sentence } from '../../../../sentence';
import { useMay, useSession } from '../../../../session';
import { Texts } from './-texts';
import { Trial } from './-trial';
import classes from './tool.module.css';

export const Route = createFileRoute('/w/$ws/tools/$id/')({
  component: ToolPage,
  validateSearch: (search: Record<string, unknown>): { tab?: string } => ({ tab: text(search.tab) }),
});

function ToolPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const tool = useQuery(toolQuery(workspace.slug, id));
  if (!tool.data) {
    return (
      <Page title="Tool" back={{ label: 'Tools', to: '/w/$ws/tools', params: { ws: workspace.slug } }}>
        <Loaded query={tool}>{() => null}</Loaded>
      </Page>
    );
  }
  return <ToolView key={tool.data.id} tool={tool.data} />;
}

function ToolView({ tool }: { tool: Tool }) {
  const { workspace } = useSession();
  const ws = workspace.slug;
  const { tab } = Route.useSearch();
  const navigate = useNavigate();
  const edits = useMay('edit_registry');
  const update = useUpdateTool(ws, tool.id);
  const hints = tool.annotations;
  return (
    <Page
      title={tool.name}
      back={{ label: tool.source_name, to: '/w/$ws/sources/$id', params: { ws, id: tool.source_id } }}
      beside={
        <Group gap={6}>
          {hints.readOnlyHint && <Tag>read-only</Tag>}
          {hints.destructiveHint && <Tag tone="bad">destructive</Tag>}
          {hints.idempotentHint && !hints.readOnlyHint && <Tag>idempotent</Tag>}
          {tool.customised && <Tag>edited</Tag>}
        </Group>
      }
      lede={
        <>
          <Method method={tool.method} /> <code>{tool.path}</code>
        </>
      }
      actions={
        <>
          {edits && (
            <Switch
              label={tool.enabled ? 'Enabled' : 'Disabled'}
              checked={tool.enabled}
              disabled={update.isPending || tool.state === 'removed'}
              onChange={(event) =>
                update.mutate({ enabled: event.currentTarget.checked }, { onError: toastFailed })
              }
              className={classes.switch}
            />
          )}
          {edits && tool.definition && (
            <LinkButton
              to="/w/$ws/tools/$id/edit"
              params={{ ws, id: tool.id }}
              variant="default"
              leftSection={<IconPencil size={16} aria-hidden />}
            >
              Edit request
            </LinkButton>
          )}
        </>
      }
    >
      {tool.state === 'removed' && (
        <Alert color="red" data-tone="red" title="This operation was removed">
          The latest document no longer contains this operation. The tool can’t be called.
        </Alert>
      )}
      {tool.warnings.length > 0 && (
        <Alert color="yellow" data-tone="yellow" title="Good to know">
          {tool.warnings.map((warning) => (
            <div key={warning}>
              <InlineCode text={sentence(warning)} />
            </div>
          ))}
        </Alert>
      )}
      <Tabs
        value={tab ?? 'try'}
        onChange={(value) =>
          void navigate({
            to: '/w/$ws/tools/$id',
            params: { ws, id: tool.id },
            search: { tab: value ?? undefined },
            replace: true,
          })
        }
      >
        <Tabs.List mb="lg">
          <Tabs.Tab value="try">Try it</Tabs.Tab>
          <Tabs.Tab value="schema">Schema</Tabs.Tab>
          <Tabs.Tab value="text">Name and description</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="try">
          <Trial tool={tool} />
        </Tabs.Panel>
        <Tabs.Panel value="schema">
          <Stack gap="lg">
            <SchemaPanel title="Arguments" schema={tool.input_schema} />
            {tool.output_schema ? (
              <SchemaPanel title="Result" schema={tool.output_schema} />
            ) : (
              <Panel title="Result">
                The document doesn’t describe the result as an object, so clients receive text.
              </Panel>
            )}
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="text">
          <Texts key={`${tool.name}${tool.title}${tool.description}`} tool={tool} />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

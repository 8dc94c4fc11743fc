import { Switch } from '@mantine/core';
import { IconMessage2, IconPlus } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { promptsQuery, useSwitchPrompt } from '../api/prompts';
import { Ago } from '../components/ago';
import { LinkButton } from '../components/link-button';
import { Empty, Loaded, Page, Panel } from '../components/page';
import { RecentlyDeleted } from '../components/recently-deleted';
import { cell, Table } from '../components/table';
import { toastFailed } from '../components/toast';
import { useMay, useSession } from '../session';

export function PromptsPage() {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const prompts = useQuery(promptsQuery(workspace.slug));
  const switchPrompt = useSwitchPrompt(workspace.slug);
  const edits = useMay('edit_registry');
  const create = edits && (
    <LinkButton to="/w/$ws/prompts/new" params={params} leftSection={<IconPlus size={17} aria-hidden />}>
      New prompt
    </LinkButton>
  );
  return (
    <Page
      title="Prompts"
      lede="A prompt starts a conversation: users pick it and fill in its arguments. Add prompts to servers to publish them."
      actions={prompts.data && prompts.data.items.length > 0 && create}
    >
      <RecentlyDeleted kind="prompt" />
      <Panel flush>
        <Loaded query={prompts}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconMessage2 size={24} />} title="No prompts yet" actions={create}>
                Write down a request your users make often, with arguments for the parts that change.
              </Empty>
            ) : (
              <Table
                label="Prompts"
                head={
                  <>
                    <th>Name</th>
                    <th>Arguments</th>
                    <th>Servers</th>
                    <th data-align="right">Changed</th>
                    <th>Enabled</th>
                  </>
                }
              >
                {items.map((prompt) => (
                  <tr key={prompt.id}>
                    <td data-wide>
                      <Link
                        to="/w/$ws/prompts/$id"
                        params={{ ...params, id: prompt.id }}
                        className={`plain ${cell.main}`}
                      >
                        {prompt.name}
                      </Link>
                      <div className={`${cell.sub} ${cell.clamp}`}>
                        {[prompt.source_name, prompt.title || prompt.description].filter(Boolean).join(' · ')}
                      </div>
                    </td>
                    <td data-label="Arguments">
                      {prompt.arguments.map((one) => one.name).join(', ') || '–'}
                    </td>
                    <td data-label="Servers">{prompt.used_by_servers.join(', ') || '–'}</td>
                    <td data-align="right" data-shrink>
                      <Ago at={prompt.updated_at} />
                    </td>
                    <td data-shrink>
                      <Switch
                        aria-label={`Enabled: ${prompt.name}`}
                        checked={prompt.enabled}
                        disabled={!edits || switchPrompt.isPending}
                        onChange={(event) =>
                          switchPrompt.mutate(
                            { id: prompt.id, enabled: event.currentTarget.checked },
                            { onError: toastFailed },
                          )
                        }
                      />
                    </td>
                  </tr>
                ))}
              </Table>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}

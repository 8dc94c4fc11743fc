import { IconTool } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { toolsQuery, useSetToolsEnabled } from '../../../api/tools';
import { LinkButton } from '../../../components/link-button';
import { Empty, Loaded, Page, Panel } from '../../../components/page';
import { toastFailed, toastUndo } from '../../../components/toast';
import { ToolList } from '../../../components/tool-list';
import { narrowed } from '../../../search';
import { useMay, useSession } from '../../../session';

export const Route = createFileRoute('/w/$ws/tools/')({
  component: ToolsPage,
  validateSearch: narrowed,
});

const plural = (count: number) => (count === 1 ? '1 tool' : `${count} tools`);

function ToolsPage() {
  const { workspace } = useSession();
  const tools = useQuery(toolsQuery(workspace.slug));
  const setEnabled = useSetToolsEnabled(workspace.slug);
  const edits = useMay('edit_registry');
  return (
    <Page
      title="Tools"
      lede="All tools from all sources. Disabled tools are not listed by any server and can’t be called."
    >
      <Panel flush>
        <Loaded query={tools} lines={8}>
          {(items) =>
            items.length === 0 ? (
              <Empty
                icon={<IconTool size={24} />}
                title="No tools yet"
                actions={
                  edits && (
                    <LinkButton to="/w/$ws/sources/import" params={{ ws: workspace.slug }}>
                      Import an API
                    </LinkButton>
                  )
                }
              >
                Import an API. Each of its operations becomes a tool.
              </Empty>
            ) : (
              <ToolList
                ws={workspace.slug}
                tools={items}
                withSource
                editable={edits}
                pending={setEnabled.isPending}
                onSetEnabled={(ids, enabled) =>
                  setEnabled.mutate(
                    { ids, enabled },
                    {
                      onSuccess: (switched) =>
                        toastUndo(
                          `${plural(ids.length)} ${enabled ? 'enabled' : 'disabled'}.`,
                          () => setEnabled.mutateAsync({ ids: switched.ids, enabled: !enabled }),
                          'Undone.',
                        ),
                      onError: toastFailed,
                    },
                  )
                }
              />
            )
          }
        </Loaded>
      </Panel>
    </Page>
  );
}

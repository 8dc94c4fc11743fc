import { Button } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { type DeletedKind, trashQuery, useRestore } from '../../api/trash';
import { Ago } from '../../components/ago';
import { Empty, Loaded, Page, Panel } from '../../components/page';
import { cell, Table } from '../../components/table';
import { toastDone, toastFailed } from '../../components/toast';
import { useMay, useSession } from '../../session';
import { daysLeft } from '../../time';

export const Route = createFileRoute('/w/$ws/trash')({
  component: TrashPage,
});

const kinds: Record<DeletedKind, string> = {
  source: 'Source',
  server: 'Server',
  prompt: 'Prompt',
  resource: 'Resource',
};

function TrashPage() {
  const { workspace } = useSession();
  const trash = useQuery(trashQuery(workspace.slug));
  const restore = useRestore(workspace.slug);
  const edits = useMay('edit_registry');
  return (
    <Page
      title="Trash"
      help="console#trash"
      lede="Deleted sources, servers, prompts and resources. You can restore them for 30 days; then they are removed for good."
    >
      <Panel flush>
        <Loaded query={trash}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty icon={<IconTrash size={24} />} title="The trash is empty">
                What you delete is kept here for 30 days.
              </Empty>
            ) : (
              <Table
                label="Deleted items"
                head={
                  <>
                    <th>Name</th>
                    <th>Deleted</th>
                    <th>Removed in</th>
                    <th>
                      <span className="visually-hidden">Actions</span>
                    </th>
                  </>
                }
              >
                {items.map((item) => (
                  <tr key={`${item.kind} ${item.id}`}>
                    <td data-wide>
                      <div className={cell.main}>{item.name}</div>
                      <div className={cell.sub}>{kinds[item.kind]}</div>
                    </td>
                    <td data-label="Deleted">
                      <Ago at={item.deleted_at} />
                    </td>
                    <td data-label="Removed in">{daysLeft(item.restorable_until, Date.now())}</td>
                    <td data-align="right" data-shrink>
                      <Button
                        size="compact-sm"
                        variant="default"
                        disabled={!edits || restore.isPending}
                        aria-label={`Restore ${item.name}`}
                        onClick={() =>
                          restore.mutate(item, {
                            onSuccess: () => toastDone(`${item.name} was restored.`),
                            onError: toastFailed,
                          })
                        }
                      >
                        Restore
                      </Button>
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

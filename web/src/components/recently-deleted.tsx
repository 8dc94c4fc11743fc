import { Alert, Button, Group, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type DeletedKind, trashQuery, useRestore } from '../api/trash';
import { useMay, useSession } from '../session';
import { TextLink } from './link-button';
import { Refused } from './refused';
import { toastDone } from './toast';

/** Milliseconds for which a list offers a deleted thing; after that only the trash does. */
const offered = 10 * 60_000;

/** Lists items that any member deleted within ten minutes, with a button that restores each. */
export function RecentlyDeleted({ kind }: { kind: DeletedKind }) {
  const { workspace } = useSession();
  const edits = useMay('edit_registry');
  const trash = useQuery({ ...trashQuery(workspace.slug), enabled: edits });
  const restore = useRestore(workspace.slug);
  const things = (trash.data?.items ?? []).filter(
    (one) => one.kind === kind && Date.parse(one.deleted_at) > Date.now() - offered,
  );
  if (!edits || (things.length === 0 && !restore.error)) return null;
  return (
    <Stack gap="sm" component="section" aria-label="Recently deleted">
      <Refused error={restore.error} title="It was not restored" />
      {things.map((one) => (
        <Alert key={one.id} color="sea">
          <Group justify="space-between" gap="sm">
            <span>
              “{one.name}” was deleted. It stays in the{' '}
              <TextLink underline="always" to="/w/$ws/trash" params={{ ws: workspace.slug }}>
                trash
              </TextLink>{' '}
              for 30 days.
            </span>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`Restore ${one.name}`}
              loading={restore.isPending && restore.variables.id === one.id}
              onClick={() =>
                restore.mutate(one, { onSuccess: () => toastDone(`“${one.name}” was restored.`) })
              }
            >
              Restore
            </Button>
          </Group>
        </Alert>
      ))}
    </Stack>
  );
}

import { Alert, Button, Group, Stack } from '@mantine/core';
import type { useRecentlyDeleted } from '../api/trash';
import { useSession } from '../session';
import { TextLink } from './link-button';
import { Refused } from './refused';
import { toastDone } from './toast';

/** Things that any member deleted within ten minutes, with a button that restores each. */
export function RecentlyDeleted({ deleted }: { deleted: ReturnType<typeof useRecentlyDeleted> }) {
  const { workspace } = useSession();
  const { things, restore } = deleted;
  if (things.length === 0 && !restore.error) return null;
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

import { Button, Group, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconFileCode } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { configurationQuery, type ObjectKind } from '../../api/configuration';
import { CopyButton } from '../../components/copy';
import { Dialog } from '../../components/dialog';
import { TextLink } from '../../components/link-button';
import { NumberedText } from '../../components/numbered-text';
import { Loaded } from '../../components/page';
import { useMay, useSession } from '../../session';

/** Shows the part of the workspace's file that is one object, to those who may read the file. */
export function ShowAsYaml({ kind, of }: { kind: ObjectKind; of: string }) {
  const { workspace } = useSession();
  const params = { ws: workspace.slug };
  const edits = useMay('edit_registry');
  const [opened, { open, close }] = useDisclosure(false);
  const part = useQuery({
    ...configurationQuery(workspace.slug, { kind, key: of }),
    enabled: opened,
  });
  if (!edits) return null;
  return (
    <>
      <Button variant="default" leftSection={<IconFileCode size={16} aria-hidden />} onClick={open}>
        Show as YAML
      </Button>
      <Dialog wide title={`${of} as YAML`} opened={opened} onClose={close}>
        <Stack gap="md">
          <span>
            The part of the workspace’s file that is this {kind}. The whole file is on the page{' '}
            <TextLink to="/w/$ws/configuration" params={params} underline="always">
              Configuration
            </TextLink>
            .
          </span>
          <Loaded query={part} lines={6}>
            {(text) => (
              <div>
                <NumberedText text={text} label={`This ${kind} as YAML`} />
                <Group justify="flex-end" mt="md" gap="xs">
                  <CopyButton text={text} label="Copy the YAML" />
                  <Button onClick={close}>Close</Button>
                </Group>
              </div>
            )}
          </Loaded>
        </Stack>
      </Dialog>
    </>
  );
}

import { Autocomplete, Button, Group, Stack, Tabs, TextInput } from '@mantine/core';
import type { ImportPreview } from '../../../api/sources';
import type { Fields } from '../../../components/form';
import { LeftOut, Operations } from '../../../components/operations';
import classes from '../../../components/operations.module.css';
import { Panel } from '../../../components/page';
import { Problems } from '../../../components/problems';
import { Submit } from '../../../components/submit';
import { addressFault, blank } from '../../../rules';

/** The name and base URL of the new source, and the keys of the chosen operations. */
export type Chosen = { name: string; base_url: string; operations: Set<string> };

const longestName = 80;

const tooLong = (name: string) =>
  name.trim().length > longestName ? `Use up to ${longestName} characters.` : null;

/** The faults of what was chosen, by field. */
export const chosenFaults = ({ name, base_url }: Chosen) => ({
  name: blank(name, 'Enter a name for the source.') ?? tooLong(name),
  base_url: addressFault(base_url),
});

/** Name and base URL of the source, and a choice of the operations that become tools. */
export function ToolsStep({
  preview,
  form,
  onBack,
  onNext,
}: {
  preview: ImportPreview;
  form: Fields<Chosen>;
  onBack: () => void;
  onNext: () => void;
}) {
  const { name, operations: chosen } = form.values;
  const tools = preview.operations.filter((one) => one.status === 'tool');
  const leftOut = preview.operations.filter((one) => one.status === 'left_out');
  const warned = tools.filter((one) => one.warnings.length > 0);
  const nothing = tools.length === 0;

  return (
    <form ref={form.ref} onSubmit={form.onSubmit(() => nothing || onNext())} noValidate>
      <Stack gap="lg">
        <Panel
          title={`${preview.title} ${preview.version}`}
          note={`OpenAPI ${preview.spec_version}: ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}, ${leftOut.length} left out`}
        >
          <Group grow align="flex-start" preventGrowOverflow={false} wrap="wrap">
            <TextInput
              label="Source name"
              description="Shown in the console."
              miw={220}
              {...form.getInputProps('name')}
              error={form.errors.name ?? tooLong(name)}
            />
            <Autocomplete
              label="Base URL"
              description="Prepended to every path."
              data={[...new Set(preview.servers.map((server) => server.url))]}
              miw={260}
              {...form.getInputProps('base_url')}
            />
          </Group>
        </Panel>
        <Panel title="Operations" flush>
          {preview.operations.length === 0 ? (
            <p className={classes.none}>This document has no operations.</p>
          ) : (
            <Tabs defaultValue={nothing ? 'left' : 'tools'} keepMounted={false}>
              <Tabs.List px="md">
                <Tabs.Tab value="tools">Tools {tools.length}</Tabs.Tab>
                <Tabs.Tab value="left">Left out {leftOut.length}</Tabs.Tab>
                <Tabs.Tab value="problems">Notes {preview.problems.length + warned.length}</Tabs.Tab>
              </Tabs.List>
              <Tabs.Panel value="tools">
                <Operations
                  operations={preview.operations}
                  chosen={chosen}
                  onChange={(operations) => form.setFieldValue('operations', operations)}
                />
              </Tabs.Panel>
              <Tabs.Panel value="left" p={leftOut.length === 0 ? 'lg' : 0}>
                {leftOut.length === 0 ? 'Every operation became a tool.' : <LeftOut operations={leftOut} />}
              </Tabs.Panel>
              <Tabs.Panel value="problems" p="lg">
                {preview.problems.length + warned.length === 0 ? (
                  'No issues found.'
                ) : (
                  <Problems
                    problems={[
                      ...preview.problems,
                      ...warned.flatMap((one) =>
                        one.warnings.map((warning) => ({
                          severity: 'warning' as const,
                          message: warning,
                          pointer: one.key,
                        })),
                      ),
                    ]}
                  />
                )}
              </Tabs.Panel>
            </Tabs>
          )}
        </Panel>
        <Submit
          sticky
          title="The source was not created"
          fault={
            nothing ? 'No operation of this document can become a tool. Choose another document.' : form.fault
          }
        >
          <Button type="submit" disabled={nothing}>
            Continue with {chosen.size} {chosen.size === 1 ? 'tool' : 'tools'}
          </Button>
          <Button variant="default" onClick={onBack}>
            Back
          </Button>
          {chosen.size === 0 && !nothing && (
            <span>No tools selected. All tools are created disabled; you can enable them later.</span>
          )}
        </Submit>
      </Stack>
    </form>
  );
}

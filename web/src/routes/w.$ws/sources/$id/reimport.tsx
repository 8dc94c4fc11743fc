import { Alert, Button, Group, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useNavigate } from '@tanstack/react-router';
import { ApiError } from '../../../../api/http';
import {
  type ReimportPreview,
  type Source,
  sourceQuery,
  usePreviewReimport,
  useReimport,
} from '../../../../api/sources';
import { Method, Tag } from '../../../../components/badges';
import { DocumentInputFields, emptyDraft, readDraft } from '../../../../components/document-input';
import { useFields } from '../../../../components/form';
import { InlineCode } from '../../../../components/inline-code';
import { Facts, Loaded, Page, Panel } from '../../../../components/page';
import { DocumentRefused, Problems } from '../../../../components/problems';
import { Restricted } from '../../../../components/restricted';
import { cell, Table } from '../../../../components/table';
import { toastDone } from '../../../../components/toast';
import { sentence } from '../../../../sentence';
import { useSession } from '../../../../session';

export const Route = createFileRoute('/w/$ws/sources/$id/reimport')({
  component: ReimportPage,
});

/** A newer document for a source: the difference first, then the change. */
function ReimportPage() {
  const { workspace } = useSession();
  const { id } = Route.useParams();
  const source = useQuery(sourceQuery(workspace.slug, id));
  const back = {
    label: source.data?.name ?? 'Source',
    to: '/w/$ws/sources/$id',
    params: { ws: workspace.slug, id },
  } as const;
  return (
    <Restricted needs="edit_registry" title="Import again" back={back}>
      <Page
        title="Import again"
        back={back}
        lede="Review the changes before you apply them. Names and descriptions you edited are kept."
      >
        <Loaded query={source}>{(data) => <Reimport source={data} />}</Loaded>
      </Page>
    </Restricted>
  );
}

function Reimport({ source }: { source: Source }) {
  const { workspace } = useSession();
  const navigate = useNavigate();
  const form = useFields({
    initialValues: {
      ...emptyDraft(source.document_url ? 'url' : 'file'),
      url: source.document_url ?? '',
    },
    validate: (draft) => {
      const outcome = readDraft(draft, undefined);
      return { document: 'fault' in outcome ? outcome.fault : null };
    },
  });
  const draft = form.values;
  const preview = usePreviewReimport(workspace.slug, source.id);
  const apply = useReimport(workspace.slug, source.id);

  const compare = form.onSubmit((draft) => {
    const outcome = readDraft(draft, undefined);
    if ('fault' in outcome) return;
    apply.reset();
    preview.mutate(outcome.input);
  });

  const changedMeanwhile = apply.error instanceof ApiError && apply.error.code === 'document_changed';
  return (
    <Stack gap="lg">
      <Panel title="OpenAPI document">
        <form ref={form.ref} onSubmit={compare} noValidate>
          <DocumentInputFields
            draft={draft}
            onChange={(next) => {
              form.setValues(next);
              preview.reset();
            }}
            fault={form.errors.document}
          />
          <Group mt="lg">
            <Button type="submit" loading={preview.isPending} variant={preview.data ? 'default' : 'filled'}>
              {preview.data ? 'Compare again' : 'Compare'}
            </Button>
          </Group>
        </form>
      </Panel>
      {preview.error && <DocumentRefused error={preview.error} />}
      {apply.error && (
        <Alert
          color="red"
          data-tone="red"
          role="alert"
          title={changedMeanwhile ? 'The document changed since you compared' : 'The import was not applied'}
        >
          <Text mb="md">{apply.error.message}</Text>
          {changedMeanwhile && (
            <Button variant="default" onClick={() => compare()}>
              Compare again
            </Button>
          )}
        </Alert>
      )}
      {preview.data && (
        <Difference
          preview={preview.data}
          pending={apply.isPending}
          onApply={() => {
            const outcome = readDraft(draft, undefined);
            if ('fault' in outcome) return;
            apply.mutate(
              { input: outcome.input, digest: preview.data.digest },
              {
                onSuccess: () => {
                  toastDone('Document applied.');
                  void navigate({ to: '/w/$ws/sources/$id', params: { ws: workspace.slug, id: source.id } });
                },
              },
            );
          }}
        />
      )}
    </Stack>
  );
}

function Difference({
  preview,
  pending,
  onApply,
}: {
  preview: ReimportPreview;
  pending: boolean;
  onApply: () => void;
}) {
  const nothing = preview.added.length + preview.removed.length + preview.changed.length === 0;
  return (
    <>
      <Panel title="Changes">
        <Facts
          items={[
            ['Added', preview.added.length],
            ['Removed', preview.removed.length],
            ['Changed', preview.changed.length],
            ['Unchanged', preview.unchanged],
          ]}
        />
      </Panel>
      {preview.removed.length > 0 && (
        <Panel title="Removed" note="These tools can’t be called any more." flush>
          <Table
            label="Removed operations"
            head={
              <>
                <th>Tool</th>
                <th>Used by servers</th>
              </>
            }
          >
            {preview.removed.map((one) => (
              <tr key={one.key}>
                <td data-wide>
                  <code className={cell.main}>{one.tool_name}</code>
                  <div className={cell.sub}>{one.key}</div>
                </td>
                <td data-label="Servers">
                  {one.used_by_servers.length === 0
                    ? 'None'
                    : one.used_by_servers.map((slug) => (
                        <Tag key={slug} tone="bad">
                          {slug}
                        </Tag>
                      ))}
                </td>
              </tr>
            ))}
          </Table>
        </Panel>
      )}
      {preview.changed.length > 0 && (
        <Panel title="Changed" flush>
          <Table
            label="Changed operations"
            head={
              <>
                <th>Tool</th>
                <th>What changed</th>
              </>
            }
          >
            {preview.changed.map((one) => (
              <tr key={one.key}>
                <td data-wide>
                  <code className={cell.main}>{one.tool_name}</code>
                  <div className={cell.sub}>{one.key}</div>
                </td>
                <td data-wide>
                  {one.changes.map((change) => (
                    <div key={change}>
                      <InlineCode text={sentence(change)} />
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </Table>
        </Panel>
      )}
      {preview.added.length > 0 && (
        <Panel title="Added" flush>
          <Table
            label="Added operations"
            head={
              <>
                <th>Tool</th>
                <th>Operation</th>
              </>
            }
          >
            {preview.added.map((one) => (
              <tr key={one.key}>
                <td data-wide>
                  <code className={cell.main}>{one.tool_name ?? 'left out'}</code>
                  <div className={cell.sub}>{one.reason ?? one.title}</div>
                </td>
                <td data-wide>
                  <Method method={one.method} /> <code>{one.path}</code>
                </td>
              </tr>
            ))}
          </Table>
        </Panel>
      )}
      {preview.problems.length > 0 && (
        <Panel title="Notes">
          <Problems problems={preview.problems} />
        </Panel>
      )}
      {nothing ? (
        <Alert color="sea" data-tone="sea">
          No tools change. Apply the document to store its latest text.
        </Alert>
      ) : null}
      <Group>
        <Button loading={pending} onClick={onApply}>
          Apply the document
        </Button>
      </Group>
    </>
  );
}

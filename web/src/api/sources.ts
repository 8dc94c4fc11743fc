import { queryOptions, useMutation } from '@tanstack/react-query';
import { answer, api, everyPage, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Source = Schemas['Source'];
export type SourceSettings = Schemas['SourceSettings'];
export type SecurityHint = Schemas['SecurityHint'];
export type DocumentInput = Schemas['DocumentInput'];
export type ImportPreview = Schemas['ImportPreview'];
export type OperationPreview = Schemas['OperationPreview'];
export type Problem = Schemas['Problem'];
export type ReimportPreview = Schemas['ReimportPreview'];
export type Credential = Schemas['Credential'];
export type CredentialSummary = Schemas['CredentialSummary'];
export type CredentialState = CredentialSummary['state'];
export type CreateSource = Schemas['NewSource'];

export const kindName = (kind: Source['kind']) =>
  ({ openapi: 'OpenAPI', http: 'Manual', mcp: 'MCP server' })[kind];

export const sourcesQuery = (ws: string) =>
  queryOptions({
    queryKey: key(ws, 'sources'),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/sources', { params: { path: { ws } } })),
  });

export const sourceQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'sources', id),
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}', { params: { path: { ws, id } } })),
  });

export const sourceToolsQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'tools', 'of', id),
    queryFn: () =>
      everyPage((cursor) =>
        answer(
          api.GET('/api/v1/workspaces/{ws}/sources/{id}/tools', {
            params: { path: { ws, id }, query: { cursor } },
          }),
        ),
      ),
  });

export function usePreviewImport(ws: string) {
  return useMutation({
    mutationFn: (input: DocumentInput) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/imports/preview', { params: { path: { ws } }, body: { input } }),
      ),
  });
}

export const useCreateSource = (ws: string) =>
  useChange(ws, 'sources', (body: CreateSource) =>
    answer(api.POST('/api/v1/workspaces/{ws}/sources', { params: { path: { ws } }, body })),
  );

export const useUpdateSource = (ws: string, id: string) =>
  useChange(ws, 'sources', (body: Schemas['SourceChange']) =>
    answer(api.PATCH('/api/v1/workspaces/{ws}/sources/{id}', { params: { path: { ws, id } }, body })),
  );

export const useDeleteSource = (ws: string) =>
  useChange(
    ws,
    'sources',
    (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}', { params: { path: { ws, id } } })),
    { gone: (id) => id },
  );

export function usePreviewReimport(ws: string, id: string) {
  return useMutation({
    mutationFn: (input: DocumentInput) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/sources/{id}/reimport/preview', {
          params: { path: { ws, id } },
          body: { input },
        }),
      ),
  });
}

export const useReimport = (ws: string, id: string) =>
  useChange(ws, 'sources', (body: Schemas['ReimportRequest']) =>
    answer(api.POST('/api/v1/workspaces/{ws}/sources/{id}/reimport', { params: { path: { ws, id } }, body })),
  );

const testCredential = (ws: string, id: string) =>
  answer(
    api.POST('/api/v1/workspaces/{ws}/sources/{id}/credential/test', {
      params: { path: { ws, id } },
      body: {},
    }),
  );

/** Saves a credential and tests it. It stays saved if the test cannot be made: its state is that it was never tried. */
export const useSetCredential = (ws: string) =>
  useChange(ws, 'sources', async ({ id, credential }: { id: string; credential: Credential }) => {
    const saved = await answer(
      api.PUT('/api/v1/workspaces/{ws}/sources/{id}/credential', {
        params: { path: { ws, id } },
        body: credential,
      }),
    );
    try {
      return (await testCredential(ws, id)).credential;
    } catch {
      return saved;
    }
  });

export const useTestCredential = (ws: string) =>
  useChange(ws, 'sources', (id: string) => testCredential(ws, id));

export const useDeleteCredential = (ws: string) =>
  useChange(ws, 'sources', (id: string) =>
    answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}/credential', { params: { path: { ws, id } } })),
  );

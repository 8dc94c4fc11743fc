import { queryOptions, useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api, everyPage, type Schemas } from './http';

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
    queryKey: [ws, 'sources'],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/sources', { params: { path: { ws } } })),
  });

export const sourceQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'sources', id],
    queryFn: () => answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}', { params: { path: { ws, id } } })),
  });

export const sourceToolsQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: [ws, 'tools', 'of', id],
    queryFn: () =>
      everyPage((cursor) =>
        answer(
          api.GET('/api/v1/workspaces/{ws}/sources/{id}/tools', {
            params: { path: { ws, id }, query: { cursor } },
          }),
        ),
      ),
  });

/** A change to a source moves tool counts, servers and the overview: everything of the workspace is read again. */
function useRefresh(ws: string) {
  const client = useQueryClient();
  return () => client.invalidateQueries({ queryKey: [ws] });
}

export function usePreviewImport(ws: string) {
  return useMutation({
    mutationFn: (input: DocumentInput) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/imports/preview', { params: { path: { ws } }, body: { input } }),
      ),
  });
}

export function useCreateSource(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: CreateSource) =>
      answer(api.POST('/api/v1/workspaces/{ws}/sources', { params: { path: { ws } }, body })),
    onSuccess: refresh,
  });
}

export function useUpdateSource(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['SourceChange']) =>
      answer(api.PATCH('/api/v1/workspaces/{ws}/sources/{id}', { params: { path: { ws, id } }, body })),
    onSuccess: refresh,
  });
}

export function useDeleteSource(ws: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}', { params: { path: { ws, id } } })),
    // Does not fetch the deleted item again: the user is about to leave its page.
    onSuccess: (_, id) =>
      client.invalidateQueries({ queryKey: [ws], predicate: (query) => !query.queryKey.includes(id) }),
  });
}

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

export function useReimport(ws: string, id: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (body: Schemas['ReimportRequest']) =>
      answer(
        api.POST('/api/v1/workspaces/{ws}/sources/{id}/reimport', { params: { path: { ws, id } }, body }),
      ),
    onSuccess: refresh,
  });
}

const testCredential = (ws: string, id: string) =>
  answer(
    api.POST('/api/v1/workspaces/{ws}/sources/{id}/credential/test', {
      params: { path: { ws, id } },
      body: {},
    }),
  );

/** Saves a credential and tests it. It stays saved if the test cannot be made: its state is that it was never tried. */
export function useSetCredential(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: async ({ id, credential }: { id: string; credential: Credential }) => {
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
    },
    onSuccess: refresh,
  });
}

export function useTestCredential(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({ mutationFn: (id: string) => testCredential(ws, id), onSuccess: refresh });
}

export function useDeleteCredential(ws: string) {
  const refresh = useRefresh(ws);
  return useMutation({
    mutationFn: (id: string) =>
      answer(api.DELETE('/api/v1/workspaces/{ws}/sources/{id}/credential', { params: { path: { ws, id } } })),
    onSuccess: refresh,
  });
}

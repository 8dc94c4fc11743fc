import { queryOptions } from '@tanstack/react-query';
import { answer, api, type Schemas } from './http';
import { key, useChange } from './nouns';

export type Attachment = Schemas['Attachment'];
export type AttachmentKey = Schemas['AttachmentKey'];

/** How often the page looks whether a program is connected, in milliseconds. */
const LOOK = 5000;

export const attachmentQuery = (ws: string, id: string) =>
  queryOptions({
    queryKey: key(ws, 'sources', id, 'attachment'),
    queryFn: () =>
      answer(api.GET('/api/v1/workspaces/{ws}/sources/{id}/attachment', { params: { path: { ws, id } } })),
    refetchInterval: LOOK,
  });

/** The address of each attached server ends so; no other address does. */
export const isAttached = (baseUrl: string) =>
  URL.canParse(baseUrl) && new URL(baseUrl).hostname.endsWith('.attached.invalid');

export const useAddAttachment = (ws: string) =>
  useChange(ws, 'sources', (body: Schemas['NewAttachment']) =>
    answer(api.POST('/api/v1/workspaces/{ws}/attachments', { params: { path: { ws } }, body })),
  );

export const useReplaceAttachmentKey = (ws: string, id: string) =>
  useChange(ws, 'sources', () =>
    answer(api.POST('/api/v1/workspaces/{ws}/sources/{id}/attachment/key', { params: { path: { ws, id } } })),
  );

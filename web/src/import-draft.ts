import type { ImportPreview, Source } from './api/sources';
import type { DocumentDraft } from './components/document-input';

/** The state of an unfinished import. Credentials are never part of it. */
export interface ImportDraft {
  document: DocumentDraft;
  preview?: ImportPreview;
  /** Keys of the selected operations. */
  selected: string[];
  name: string;
  baseUrl: string;
  source?: Source;
}

const key = (ws: string) => `portolan-import-${ws}`;

/** The import that this tab was at, if there is one. */
export function keptImport(ws: string): ImportDraft | undefined {
  try {
    const raw = window.sessionStorage.getItem(key(ws));
    return raw ? (JSON.parse(raw) as ImportDraft) : undefined;
  } catch {
    return undefined;
  }
}

/** Kept for this tab, so that Back and a reload lose nothing. Too large a document is not kept. */
export function keepImport(ws: string, draft: ImportDraft) {
  try {
    window.sessionStorage.setItem(key(ws), JSON.stringify(draft));
  } catch {
    forgetImport(ws);
  }
}

export function forgetImport(ws: string) {
  try {
    window.sessionStorage.removeItem(key(ws));
  } catch {
    // Storage may be switched off.
  }
}

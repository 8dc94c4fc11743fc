import { Button, FileButton, Textarea, TextInput } from '@mantine/core';
import { IconClipboardText, IconFileUpload, IconLink, IconSailboat } from '@tabler/icons-react';
import { type DragEvent, type ReactNode, useState } from 'react';
import type { DemoApi } from '../api/me';
import type { DocumentInput } from '../api/sources';
import classes from './document-input.module.css';

export type DocumentKind = 'demo' | 'text' | 'file' | 'url';

/** The person's input so far. It survives going back, so that no typed text is lost. */
export type DocumentDraft = {
  kind: DocumentKind;
  text: string;
  url: string;
  file: { name: string; size: number; text: string } | null;
};

export const emptyDraft = (kind: DocumentKind): DocumentDraft => ({ kind, text: '', url: '', file: null });

const maxBytes = 10 * 1024 * 1024;

/** The draft as the API takes it, or what is missing in it. */
export function readDraft(
  draft: DocumentDraft,
  demo: DemoApi | undefined,
): { input: DocumentInput } | { fault: string } {
  switch (draft.kind) {
    case 'demo':
      return demo
        ? { input: { kind: 'url', url: demo.openapi_url } }
        : { fault: 'The demo API is not available.' };
    case 'file':
      return draft.file
        ? { input: { kind: 'text', text: draft.file.text } }
        : { fault: 'Choose a file first.' };
    case 'text':
      if (draft.text.trim() === '') return { fault: 'Paste an OpenAPI document first.' };
      if (new Blob([draft.text]).size > maxBytes) return { fault: 'The document is larger than 10 MiB.' };
      return { input: { kind: 'text', text: draft.text } };
    case 'url': {
      const url = draft.url.trim();
      if (!/^https?:\/\/\S+$/i.test(url) || !URL.canParse(url)) {
        return { fault: 'Enter a complete URL that begins with https://.' };
      }
      return { input: { kind: 'url', url } };
    }
  }
}

const kinds = [
  { kind: 'demo', title: 'Demo API', text: 'A sample API that runs on this server.', icon: IconSailboat },
  { kind: 'url', title: 'URL', text: 'Portolan fetches the document.', icon: IconLink },
  { kind: 'file', title: 'Upload', text: 'JSON or YAML, up to 10 MiB.', icon: IconFileUpload },
  { kind: 'text', title: 'Paste', text: 'JSON or YAML text.', icon: IconClipboardText },
] as const;

export function DocumentInputFields({
  draft,
  onChange,
  demo,
  fault,
}: {
  draft: DocumentDraft;
  onChange: (draft: DocumentDraft) => void;
  demo?: DemoApi;
  fault: ReactNode;
}) {
  const [over, setOver] = useState(false);
  const [fileFault, setFileFault] = useState<string | null>(null);

  async function take(file: File | null | undefined) {
    if (!file) return;
    if (file.size > maxBytes) {
      setFileFault(`${file.name} is larger than 10 MiB.`);
      return;
    }
    setFileFault(null);
    onChange({ ...draft, kind: 'file', file: { name: file.name, size: file.size, text: await file.text() } });
  }

  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    void take(event.dataTransfer.files[0]);
  }

  const problem = fileFault ?? fault;
  return (
    <div>
      <fieldset className={classes.kinds}>
        <legend className="visually-hidden">Source of the OpenAPI document</legend>
        {kinds
          .filter(({ kind }) => kind !== 'demo' || demo)
          .map(({ kind, title, text, icon: Icon }) => (
            <label key={kind} className={classes.kind}>
              <input
                type="radio"
                name="document-kind"
                checked={draft.kind === kind}
                onChange={() => onChange({ ...draft, kind })}
              />
              <Icon size={22} stroke={1.6} aria-hidden />
              <span className={classes.kindTitle}>{title}</span>
              <span className={classes.kindText}>{text}</span>
            </label>
          ))}
      </fieldset>
      {draft.kind === 'demo' && demo && (
        <TextInput
          label={demo.title}
          description="OpenAPI document of the demo API"
          value={demo.openapi_url}
          readOnly
        />
      )}
      {draft.kind === 'url' && (
        <TextInput
          label="URL of the document"
          placeholder="https://api.example.com/openapi.json"
          type="url"
          inputMode="url"
          value={draft.url}
          onChange={(event) => onChange({ ...draft, url: event.currentTarget.value })}
          error={problem}
          spellCheck={false}
        />
      )}
      {draft.kind === 'text' && (
        <Textarea
          label="OpenAPI document"
          placeholder={'openapi: 3.1.0\ninfo:\n  title: …'}
          rows={16}
          value={draft.text}
          onChange={(event) => onChange({ ...draft, text: event.currentTarget.value })}
          error={problem}
          className={classes.mono}
          spellCheck={false}
        />
      )}
      {draft.kind === 'file' && (
        // biome-ignore lint/a11y/noStaticElementInteractions: dropping is an extra way; the button inside does the same
        <div
          className={classes.drop}
          data-over={over || undefined}
          onDragOver={(event) => {
            event.preventDefault();
            setOver(true);
          }}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
        >
          {draft.file ? (
            <>
              <span className={classes.fileName}>{draft.file.name}</span>
              <p>{Math.ceil(draft.file.size / 1024).toLocaleString()} KiB</p>
            </>
          ) : (
            <p>Drop a file here, or</p>
          )}
          <FileButton onChange={take} accept=".json,.yaml,.yml,application/json,application/yaml,text/yaml">
            {(props) => (
              <Button {...props} variant="default">
                {draft.file ? 'Choose another file' : 'Choose a file'}
              </Button>
            )}
          </FileButton>
          {problem && (
            <p role="alert" className={classes.fault}>
              {problem}
            </p>
          )}
        </div>
      )}
    </div>
  );
}

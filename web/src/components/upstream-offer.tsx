import { Alert, Checkbox } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Upstream, UpstreamPreview } from '../api/upstreams';
import { sentence } from '../sentence';
import { InlineCode } from './inline-code';
import { Facts, Panel } from './page';
import { cell, Table } from './table';

/** Shows what a server reports about itself. */
export function ServerFacts({
  server,
}: {
  server: Pick<UpstreamPreview, 'revision' | 'server_name' | 'server_version' | 'instructions'> | Upstream;
}) {
  const facts: [string, ReactNode][] = [];
  if (server.server_name) facts.push(['Name', `${server.server_name} ${server.server_version ?? ''}`.trim()]);
  facts.push(['Protocol', <code key="revision">{server.revision ?? 'unknown'}</code>]);
  if (server.instructions) facts.push(['Instructions', server.instructions]);
  return <Facts items={facts} />;
}

/** A number of things, as in "1 tool" and "3 tools". */
export const plural = (count: number, one: string) => (count === 1 ? `1 ${one}` : `${count} ${one}s`);

/** Lists what a server offers; tools can be selected. */
export function Offered({
  offer,
  chosen,
  onChoose,
}: {
  offer: UpstreamPreview;
  chosen: Set<string>;
  onChoose: (chosen: Set<string>) => void;
}) {
  const all = chosen.size === offer.tools.length;
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    onChoose(next);
  };
  return (
    <>
      <Panel
        flush
        title={`${plural(offer.tools.length, 'tool')}, ${chosen.size} selected`}
        note="Tools you don’t select are added disabled."
      >
        {offer.tools.length > 0 && (
          <Table
            label="Tools"
            head={
              <>
                <th data-shrink>
                  <Checkbox
                    aria-label="All tools"
                    checked={all}
                    indeterminate={!all && chosen.size > 0}
                    onChange={() => onChoose(new Set(all ? [] : offer.tools.map((tool) => tool.name)))}
                  />
                </th>
                <th>Tool</th>
              </>
            }
          >
            {offer.tools.map((tool) => (
              <tr key={tool.name}>
                <td data-shrink>
                  <Checkbox
                    aria-label={tool.name}
                    checked={chosen.has(tool.name)}
                    onChange={() => toggle(tool.name)}
                  />
                </td>
                <td data-wide>
                  <code className={cell.main}>{tool.name}</code>
                  <div className={cell.sub}>{tool.title || tool.description}</div>
                  {tool.warnings.map((warning) => (
                    <div key={warning} className={cell.sub}>
                      <InlineCode text={sentence(warning)} />
                    </div>
                  ))}
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Panel>
      <Lists
        prompts={offer.prompts.map((prompt) => prompt.name)}
        resources={offer.resources.map((resource) => resource.uri)}
        skipped={offer.skipped}
      />
    </>
  );
}

/** The prompts and resources that a server offers, and what of it cannot be used. */
export function Lists({
  prompts,
  resources,
  skipped,
}: {
  prompts: string[];
  resources: string[];
  skipped: string[];
}) {
  const list = (label: string, items: string[]) =>
    items.length > 0 && (
      <Panel title={plural(items.length, label)}>
        <ul className="short">
          {items.map((item) => (
            <li key={item}>
              <code>{item}</code>
            </li>
          ))}
        </ul>
      </Panel>
    );
  return (
    <>
      {list('prompt', prompts)}
      {list('resource', resources)}
      {skipped.length > 0 && (
        <Alert color="yellow" data-tone="yellow" title="Some items can’t be used">
          <ul className="short">
            {skipped.map((one) => (
              <li key={one}>
                <InlineCode text={sentence(one)} />
              </li>
            ))}
          </ul>
        </Alert>
      )}
    </>
  );
}

import { docs } from 'virtual:docs';
import { TextInput } from '@mantine/core';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute, useLocation } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { type ApiDocument, type ApiRoute, matching, referenceQuery, routesOf } from '../../api/reference';
import { InlineCode } from '../../components/inline-code';
import { Empty, Loaded, Page } from '../../components/page';
import { SchemaPanel } from '../../components/schema-tree';
import { Article } from './-article';
import classes from './api.module.css';

export const Route = createFileRoute('/docs/api')({
  component: ApiPage,
});

const guide = docs.find((doc) => doc.slug === 'api');

/** The guide of the API, and the reference of its routes, made of the document that the server publishes. */
function ApiPage() {
  const reference = useQuery(referenceQuery);
  const text = useQuery({
    queryKey: ['docs', 'api'],
    queryFn: async () => (await guide?.load())?.default ?? '',
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page title={guide?.title ?? 'The management API'} documentTitle="The management API · Docs">
      <Loaded query={text} lines={12}>
        {(html) => <Article html={html} />}
      </Loaded>
      <h2 id="reference" tabIndex={-1}>
        Reference
      </h2>
      <Loaded query={reference} lines={12}>
        {(document) => <Reference document={document} />}
      </Loaded>
    </Page>
  );
}

function Reference({ document }: { document: ApiDocument }) {
  const [search, setSearch] = useState('');
  const { hash } = useLocation();
  const routes = routesOf(document);
  const found = matching(routes, search);
  const tags = [...new Set(found.map(({ tag }) => tag))];
  return (
    <>
      <TextInput
        type="search"
        label="Find a route"
        description="By path, words or scope."
        leftSection={<IconSearch size={16} aria-hidden />}
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
      />
      <p role="status" className={classes.count}>
        {found.length} of {routes.length} routes
      </p>
      {found.length === 0 && (
        <Empty icon={<IconSearch size={24} />} title="No route has these words">
          Search for a noun such as <code>servers</code>, or a scope such as <code>registry:write</code>.
        </Empty>
      )}
      {tags.map((tag) => (
        <section key={tag} aria-label={tag}>
          <h3>{tag}</h3>
          <p>{document.tags?.find((one) => one.name === tag)?.description}</p>
          {found
            .filter((route) => route.tag === tag)
            .map((route) => (
              <Operation key={route.id} route={route} document={document} asked={hash === route.id} />
            ))}
        </section>
      ))}
    </>
  );
}

function Operation({ route, document, asked }: { route: ApiRoute; document: ApiDocument; asked: boolean }) {
  const [opened, setOpened] = useState(asked);
  const place = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (!asked) return;
    setOpened(true);
    place.current?.scrollIntoView?.();
  }, [asked]);
  return (
    <details
      id={route.id}
      ref={place}
      className={classes.route}
      open={opened}
      onToggle={(event) => setOpened(event.currentTarget.open)}
    >
      <summary>
        <code className={classes.method}>{route.method}</code> <code>{route.path}</code>
        <span className={classes.title}>
          <InlineCode text={route.title} />
        </span>
      </summary>
      {opened && <Details route={route} document={document} />}
    </details>
  );
}

function Details({ route, document }: { route: ApiRoute; document: ApiDocument }) {
  const within = (schema: object) => ({ ...schema, components: document.components });
  return (
    <div className={classes.details}>
      {route.description && (
        <p>
          <InlineCode text={route.description} />
        </p>
      )}
      <p>
        {route.takesTokens && <>Scope of a token: {route.scope ? <code>{route.scope}</code> : 'any'}. </>}
        {!route.takesTokens && <>People in a browser only. </>}
        <a href={`#${route.id}`}>Address of this route</a>
      </p>
      {route.parameters.length > 0 && (
        <dl className={classes.parameters}>
          {route.parameters.map((one) => (
            <div key={`${one.in} ${one.name}`}>
              <dt>
                <code>{one.name}</code> {one.in}
                {one.required ? ', required' : ''}
              </dt>
              <dd>{one.description && <InlineCode text={one.description} />}</dd>
            </div>
          ))}
        </dl>
      )}
      {route.body && <SchemaPanel title="Body" schema={within(route.body)} />}
      {route.answers.map((one) =>
        one.schema ? (
          <SchemaPanel
            key={one.status}
            title={`${one.status} ${one.description}`}
            schema={within(one.schema)}
          />
        ) : (
          <p key={one.status}>
            <code>{one.status}</code> {one.description}
          </p>
        ),
      )}
    </div>
  );
}

import { docs } from 'virtual:docs';
import { useQuery } from '@tanstack/react-query';
import { createFileRoute } from '@tanstack/react-router';
import { NotFoundPage } from '../../components/not-found';
import { Loaded, Page } from '../../components/page';
import { Article } from './-article';

export const Route = createFileRoute('/docs/$')({
  component: DocPage,
});

function DocPage() {
  const { _splat: slug } = Route.useParams();
  const doc = docs.find((one) => one.slug === slug);
  if (!doc) return <NotFoundPage />;
  return <Doc key={doc.slug} doc={doc} />;
}

function Doc({ doc }: { doc: (typeof docs)[number] }) {
  const text = useQuery({
    queryKey: ['docs', doc.slug],
    queryFn: async () => (await doc.load()).default,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Page title={doc.title} documentTitle={`${doc.title} · Docs`}>
      <Loaded query={text} lines={12}>
        {(html) => <Article html={html} />}
      </Loaded>
    </Page>
  );
}

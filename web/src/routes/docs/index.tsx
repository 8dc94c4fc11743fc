import { docs } from 'virtual:docs';
import { createFileRoute, Navigate } from '@tanstack/react-router';

export const Route = createFileRoute('/docs/')({
  component: FirstDoc,
});

function FirstDoc() {
  const first = docs[0];
  return first ? <Navigate to="/docs/$" params={{ _splat: first.slug }} replace /> : null;
}

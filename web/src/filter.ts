import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';

/**
 * A search or filter that stands in the address, so that Back, a reload and a copied link keep it. The text itself is
 * local state: a field must not wait for the router.
 */
export function useFilter(name: 'q' | 'show' | 'request' | 'outcome'): [string, (next: string) => void] {
  const search: Record<string, unknown> = useSearch({ strict: false });
  const navigate = useNavigate();
  const begun = search[name];
  const [value, setValue] = useState(typeof begun === 'string' ? begun : '');
  return [
    value,
    (next) => {
      setValue(next);
      void navigate({
        to: '.',
        search: ((old: Record<string, unknown>) => ({ ...old, [name]: next || undefined })) as never,
        replace: true,
        resetScroll: false,
      });
    },
  ];
}

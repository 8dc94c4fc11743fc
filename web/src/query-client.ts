import { QueryClient } from '@tanstack/react-query';
import { ApiError } from './api/http';

/** Reads are tried again when no answer came or the server was busy; refusals and changes never are. */
function worthRetrying(failures: number, error: Error): boolean {
  return failures < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 502);
}

export const queryClient = new QueryClient({
  defaultOptions: { queries: { staleTime: 10_000, retry: worthRetrying }, mutations: { retry: false } },
});

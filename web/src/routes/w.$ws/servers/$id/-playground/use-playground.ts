import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { type Me, readMe } from '../../../../../api/me';
import { authorize } from '../../../../../mcp/authorize';
import type { ClientSettings, Connection, Listener } from '../../../../../mcp/connection';
import type {
  AskMethod,
  Era,
  Level,
  McpPrompt,
  McpResource,
  McpTask,
  McpTemplate,
  McpTool,
  Members,
  RpcMessage,
} from '../../../../../mcp/messages';
import { SessionConnection } from '../../../../../mcp/session';
import { StatelessConnection } from '../../../../../mcp/stateless';
import { Timeline } from '../../../../../mcp/timeline';
import { Wire } from '../../../../../mcp/wire';

export type Phase = 'idle' | 'authorizing' | 'opening' | 'open';

/** A question of the server that waits for the person. */
export interface Question {
  key: number;
  method: AskMethod;
  params: Members;
  answer: (result: Members) => void;
  refuse: (reason: string) => void;
}

export interface Notice {
  key: number;
  at: number;
  method: string;
  params: Members;
}

export interface Offer {
  tools: McpTool[];
  prompts: McpPrompt[];
  resources: McpResource[];
  templates: McpTemplate[];
}

/** A task that this page knows, with its result when it has one. */
export interface KnownTask {
  task: McpTask;
  result?: Members;
  fault?: string;
}

const nothing: Offer = { tools: [], prompts: [], resources: [], templates: [] };
const keptNotices = 200;

const startingSettings: ClientSettings = {
  elicitation: true,
  sampling: true,
  roots: [],
  tasks: true,
  level: null,
};

export type Playground = ReturnType<typeof usePlayground>;

/** The one connection of the page, and all that it told. */
export function usePlayground(url: string) {
  const [timeline] = useState(() => new Timeline());
  const exchanges = useSyncExternalStore(timeline.subscribe, timeline.snapshot);
  const [era, setEra] = useState<Era>('2025-11-25');
  const [phase, setPhase] = useState<Phase>('idle');
  const [fault, setFault] = useState<string>();
  const [person, setPerson] = useState<Me['user']>();
  const [endsAt, setEndsAt] = useState(0);
  const [connection, setConnection] = useState<Connection>();
  const [offer, setOffer] = useState<Offer>(nothing);
  const [questions, setQuestions] = useState<Question[]>([]);
  const [notices, setNotices] = useState<Notice[]>([]);
  const [subscribed, setSubscribed] = useState<string[]>([]);
  const [settings, setSettings] = useState<ClientSettings>(startingSettings);
  const [tasks, setTasks] = useState<KnownTask[]>([]);
  const flow = useRef<AbortController>(undefined);
  const live = useRef<Connection>(undefined);
  const roots = useRef(settings.roots);
  const count = useRef(0);
  roots.current = settings.roots;

  // A page that is left ends its session, so that the server need not wait for its end.
  useEffect(
    () => () => {
      flow.current?.abort();
      void live.current?.close();
    },
    [],
  );

  const load = useCallback(async (one: Connection, which: (keyof Offer)[]) => {
    const reads: Record<keyof Offer, () => Promise<Partial<Offer>>> = {
      tools: async () => ({ tools: await one.list<McpTool>('tools/list', 'tools') }),
      prompts: async () => ({ prompts: await one.list<McpPrompt>('prompts/list', 'prompts') }),
      resources: async () => ({ resources: await one.list<McpResource>('resources/list', 'resources') }),
      templates: async () => ({
        templates: await one.list<McpTemplate>('resources/templates/list', 'resourceTemplates'),
      }),
    };
    for (const name of which) {
      const part = await reads[name]();
      if (live.current === one) setOffer((before) => ({ ...before, ...part }));
    }
  }, []);

  const ask = useCallback((method: AskMethod, params: Members, signal: AbortSignal) => {
    if (method === 'roots/list') return Promise.resolve({ roots: roots.current });
    return new Promise<Members>((resolve, reject) => {
      count.current += 1;
      const key = count.current;
      const gone = () => setQuestions((all) => all.filter((one) => one.key !== key));
      const answer = (result: Members) => {
        gone();
        resolve(result);
      };
      const refuse = (reason: string) => {
        gone();
        reject(new Error(reason));
      };
      signal.addEventListener('abort', () => refuse('The question was taken back.'));
      setQuestions((all) => [...all, { key, method, params, answer, refuse }]);
    });
  }, []);

  /** Shows a notification, and reads again what it says has changed. */
  const notice = useCallback(
    ({ method = '', params = {} }: RpcMessage) => {
      count.current += 1;
      const one = { key: count.current, at: Date.now(), method, params };
      setNotices((all) => [one, ...all].slice(0, keptNotices));
      const changed: Record<string, (keyof Offer)[]> = {
        'notifications/tools/list_changed': ['tools'],
        'notifications/prompts/list_changed': ['prompts'],
        'notifications/resources/list_changed': ['resources', 'templates'],
      };
      const which = changed[method];
      if (which && live.current) void load(live.current, which).catch(() => undefined);
    },
    [load],
  );

  const forget = useCallback(() => {
    live.current = undefined;
    setConnection(undefined);
    setPhase('idle');
    setQuestions([]);
    setSubscribed([]);
    setTasks([]);
    setOffer(nothing);
  }, []);

  async function connect(another: boolean) {
    const own = new AbortController();
    flow.current?.abort();
    flow.current = own;
    setFault(undefined);
    setPhase('authorizing');
    try {
      const { accessToken, endsAt } = await authorize(url, { another, signal: own.signal });
      setPhase('opening');
      const { user } = await readMe();
      const listener: Listener = {
        ask,
        notice,
        ended: (reason) => {
          if (live.current !== opened) return;
          setFault(reason);
        },
      };
      const wire = new Wire(url, accessToken, timeline);
      const Kind = era === '2025-11-25' ? SessionConnection : StatelessConnection;
      const opened: Connection = new Kind(wire, listener, settings);
      live.current = opened;
      await opened.open();
      if (own.signal.aborted) return void opened.close();
      setPerson(user);
      setEndsAt(endsAt);
      setConnection(opened);
      setPhase('open');
      setNotices([]);
      await load(opened, ['tools', 'prompts', 'resources', 'templates']);
    } catch (cause) {
      if (own.signal.aborted) return;
      if (live.current) void live.current.close();
      forget();
      setFault(cause instanceof Error ? cause.message : 'The connection could not be opened.');
    }
  }

  function cancel() {
    flow.current?.abort();
    setPhase('idle');
  }

  async function disconnect() {
    const closing = live.current;
    forget();
    setFault(undefined);
    await closing?.close();
  }

  async function subscribe(uris: string[]) {
    if (!connection) return;
    await connection.subscribe(uris);
    setSubscribed(uris);
  }

  async function setLevel(level: Level | null) {
    setSettings((before) => ({ ...before, level }));
    await connection?.setLevel(level);
  }

  async function setRoots(next: ClientSettings['roots']) {
    setSettings((before) => ({ ...before, roots: next }));
    await connection?.setRoots(next);
  }

  const putTask = useCallback((change: KnownTask) => {
    setTasks((all) => {
      const others = all.filter((one) => one.task.taskId !== change.task.taskId);
      const before = all.find((one) => one.task.taskId === change.task.taskId);
      return [{ ...before, ...change }, ...others];
    });
  }, []);

  return {
    timeline,
    exchanges,
    era,
    setEra,
    phase,
    fault,
    person,
    endsAt,
    connection,
    offer,
    questions,
    notices,
    subscribed,
    settings,
    setSettings,
    tasks,
    putTask,
    connect,
    cancel,
    disconnect,
    subscribe,
    setLevel,
    setRoots,
  };
}

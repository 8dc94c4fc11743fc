// A mail server on a free port of 127.0.0.1. Prints one line of JSON when it listens, and one for each message that it took.
//
//   node server.mjs none|starttls|tls [KEY CERT]
//
// The user `portolan` with the password `planted-mail-password` may send. The address decides about
// its message: `later-N@…` is refused for now the first N times (451), `never@…` for ever (550),
// `slow@…` is kept waiting.
import { readFileSync } from 'node:fs';
import { SMTPServer } from 'smtp-server';

const [security = 'none', key, cert] = process.argv.slice(2);
const refused = new Map();
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const refusal = (code, text) => Object.assign(new Error(text), { responseCode: code });

function decoded(part) {
  const [head, ...rest] = part.split('\r\n\r\n');
  const body = rest.join('\r\n\r\n');
  if (/content-transfer-encoding: quoted-printable/i.test(head)) {
    const bytes = body.replace(/=\r\n/g, '').replace(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
    return Buffer.from(bytes, 'latin1').toString('utf8');
  }
  if (/content-transfer-encoding: base64/i.test(head)) return Buffer.from(body, 'base64').toString('utf8');
  return body;
}

function read(raw) {
  const [head] = raw.split('\r\n\r\n');
  const unfolded = head.replace(/\r\n[ \t]+/g, ' ');
  const header = (name) => unfolded.match(new RegExp(`^${name}: (.*)$`, 'im'))?.[1];
  const boundary = header('content-type')?.match(/boundary="?([^";]+)"?/)?.[1];
  const parts = boundary ? raw.split(`--${boundary}`).slice(1, -1) : [raw];
  const of = (type) => {
    const part = parts.find((one) => new RegExp(`content-type: ${type}`, 'i').test(one));
    return part ? decoded(part.replace(/^\r\n/, '')) : null;
  };
  const names = ['from', 'to', 'subject', 'message-id', 'date', 'auto-submitted', 'content-type'];
  return {
    headers: Object.fromEntries(names.map((name) => [name, header(name) ?? null])),
    text: of('text/plain'),
    html: of('text/html'),
  };
}

const server = new SMTPServer({
  secure: security === 'tls',
  hideSTARTTLS: security === 'none',
  allowInsecureAuth: security === 'none',
  authOptional: false,
  disableReverseLookup: true,
  logger: false,
  ...(key ? { key: readFileSync(key), cert: readFileSync(cert) } : {}),
  onAuth({ username, password }, session, done) {
    if (username === 'portolan' && password === 'planted-mail-password') done(null, { user: username });
    else done(refusal(535, 'Authentication failed'));
  },
  onRcptTo({ address }, session, done) {
    if (address.startsWith('never@')) return done(refusal(550, 'No such user here'));
    const times = Number(address.match(/^later-(\d+)@/)?.[1] ?? 0);
    const before = refused.get(address) ?? 0;
    if (before < times) {
      refused.set(address, before + 1);
      say({ refused: address, times: before + 1 });
      return done(refusal(451, 'Greylisted, come again'));
    }
    done();
  },
  onData(stream, session, done) {
    const chunks = [];
    stream.on('data', (chunk) => chunks.push(chunk));
    stream.on('end', () => {
      const raw = Buffer.concat(chunks).toString('utf8');
      say({ took: { to: session.envelope.rcptTo.map((one) => one.address), secure: session.secure, ...read(raw) } });
      done();
    });
  },
});
server.on('error', (error) => process.stderr.write(`${error.message}\n`));
server.listen(0, '127.0.0.1', () => say({ listens: server.server.address().port }));
// Ends with the test, however that ends.
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));

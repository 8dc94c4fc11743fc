// A receiver of webhooks that verifies by the reference library of Standard Webhooks. It prints
// `listening <port>`, then one line of JSON for each message. The secrets come on standard input.
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';

const secrets = [];
const kept = [];

function say(message) {
  const { type, data } = JSON.parse(message.body);
  const verified = secrets.filter((secret) => {
    try {
      new Webhook(secret).verify(message.body, message.headers);
      return true;
    } catch {
      return false;
    }
  });
  // A message that was changed, or that has another id, must not pass.
  const forged = secrets.some((secret) => {
    try {
      new Webhook(secret).verify(`${message.body} `, message.headers);
      return true;
    } catch {
      return false;
    }
  });
  const signatures = message.headers['webhook-signature'].split(' ').length;
  const id = message.headers['webhook-id'];
  const line = { id, type, data, secrets: secrets.length, verified: verified.length, forged, signatures };
  console.log(JSON.stringify(line));
}

createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const message = { headers: request.headers, body: Buffer.concat(parts).toString('utf8') };
    response.writeHead(204).end();
    // The challenge comes before its secret is known.
    if (secrets.length === 0) kept.push(message);
    else say(message);
  });
}).listen(0, '127.0.0.1', function () {
  console.log(`listening ${this.address().port}`);
});

createInterface({ input: process.stdin })
  .on('line', (line) => {
    secrets.push(line.trim());
    kept.splice(0).forEach(say);
    console.log('{"knows":true}');
  })
  .on('close', () => process.exit(0));

// Passkeys: the only thing on these pages for which browsers want script. Each form of them is there from the beginning, hidden; this shows it,
// asks the server what to sign, has the authenticator sign, fills the form in and sends it as any other form.
(() => {
  "use strict";
  if (!window.PublicKeyCredential || !navigator.credentials) return;

  /** Authenticators are asked anew before what they were asked is too old. */
  const RENEW_MS = 4 * 60 * 1000;

  const toBytes = (text) => {
    const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  };
  const toText = (buffer) => {
    let plain = "";
    for (const byte of new Uint8Array(buffer ?? [])) plain += String.fromCharCode(byte);
    return btoa(plain).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  };
  const withIds = (list) => list.map((one) => ({ ...one, id: toBytes(one.id) }));

  /** What to sign, of the server. */
  async function options(form) {
    const answer = await fetch(form.dataset.options, {
      method: "POST",
      body: new URLSearchParams(new FormData(form)),
      credentials: "same-origin",
      redirect: "error",
    });
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    return answer.json();
  }

  function send(form, fields) {
    for (const [name, value] of Object.entries(fields)) form.elements.namedItem(name).value = value;
    form.submit();
  }

  /** Signs in, or proves again who one is. */
  async function get(form, more) {
    const asked = await options(form);
    asked.challenge = toBytes(asked.challenge);
    asked.allowCredentials = withIds(asked.allowCredentials);
    const found = await navigator.credentials.get({ publicKey: asked, ...more });
    send(form, {
      credential: toText(found.rawId),
      client_data: toText(found.response.clientDataJSON),
      authenticator_data: toText(found.response.authenticatorData),
      signature: toText(found.response.signature),
      user_handle: toText(found.response.userHandle),
    });
  }

  /** Makes a new passkey. */
  async function create(form) {
    const asked = await options(form);
    asked.challenge = toBytes(asked.challenge);
    asked.user.id = toBytes(asked.user.id);
    asked.excludeCredentials = withIds(asked.excludeCredentials);
    const made = await navigator.credentials.create({ publicKey: asked });
    send(form, {
      client_data: toText(made.response.clientDataJSON),
      attestation: toText(made.response.attestationObject),
    });
  }

  const sentences = {
    InvalidStateError: "This device already has a passkey for your account.",
    NotAllowedError: "No passkey was used. Try again, or sign in another way.",
  };

  /** The quiet request of the sign-in page, which has to give way to a loud one. */
  let quiet;

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const fault = form.querySelector("[data-fault]");
    const button = form.querySelector("button");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      quiet?.abort();
      quiet = undefined;
      fault.hidden = true;
      button.disabled = true;
      (form.dataset.passkey === "create" ? create(form) : get(form))
        .catch((error) => {
          fault.textContent = sentences[error.name] ?? "That did not work. Reload the page and try again.";
          fault.hidden = false;
          fault.focus();
        })
        .finally(() => {
          button.disabled = false;
          // Whoever changed her mind may still take what the address field proposes.
          if (form.dataset.autofill !== undefined && !fault.hidden) offer(form);
        });
    });
    form.hidden = false;
    for (const one of document.querySelectorAll("[data-with-passkey]")) one.hidden = false;
    for (const one of document.querySelectorAll("[data-without-passkey]")) one.hidden = true;
    if (form.dataset.autofill !== undefined) offer(form);
  }

  /** Passkeys among what the browser proposes for the address field. */
  async function offer(form) {
    if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
    const round = new AbortController();
    quiet = round;
    const renew = setTimeout(() => {
      round.abort();
      if (quiet === round) offer(form);
    }, RENEW_MS);
    try {
      await get(form, { mediation: "conditional", signal: round.signal });
    } catch {
      // Not taken, or given way to the button: there is nothing to say.
    } finally {
      clearTimeout(renew);
    }
  }
})();

// Comforts of our pages, which work without it: times of the reader's own clock, buttons that copy
// or print, and a mailbox that shows new mail by itself.
(() => {
  "use strict";

  const written = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
  const near = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

  /** "5 minutes ago", as the console says it; past a week the date says more. */
  function inWords(at) {
    const seconds = Math.round((at - Date.now()) / 1000);
    const size = Math.abs(seconds);
    if (size < 45) return "just now";
    if (size < 3600) return near.format(Math.round(seconds / 60), "minute");
    if (size < 86_400) return near.format(Math.round(seconds / 3600), "hour");
    if (size < 7 * 86_400) return near.format(Math.round(seconds / 86_400), "day");
    return day.format(at);
  }

  function dress(root) {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.textContent = time.dataset.form === "day" ? day.format(at) : inWords(at);
      time.title = written.format(at);
    }
    for (const one of root.querySelectorAll("[data-with-script]")) one.hidden = false;
  }
  dress(document);

  document.addEventListener("click", async (event) => {
    const button = event.target instanceof Element && event.target.closest("button[data-copy], button[data-print]");
    if (!button) return;
    if (button.dataset.print !== undefined) return window.print();
    const label = button.querySelector("[data-label]") ?? button;
    const before = label.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      label.textContent = "Copied";
    } catch {
      // Not allowed, or no secure origin: the text is on the page, to be copied by hand.
      label.textContent = "Select the text to copy it";
    }
    setTimeout(() => {
      label.textContent = before;
    }, 2000);
  });

  /** Lists of which new parts come: looked for every few seconds while the page is seen. */
  for (const list of document.querySelectorAll("[data-live]")) {
    let latest = list.innerHTML;
    dress(list);
    setInterval(async () => {
      if (document.hidden) return;
      const answer = await fetch(location.href, { credentials: "same-origin" }).catch(() => undefined);
      if (!answer?.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const now = page.getElementById(list.id)?.innerHTML;
      if (now === undefined || now === latest) return;
      latest = now;
      list.innerHTML = now;
      dress(list);
    }, 2000);
  }
})();

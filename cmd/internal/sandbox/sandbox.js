'use strict';
// The page shows what the server renders: it asks for the room, and the server
// answers once that differs from what was seen.
const main = document.querySelector('main');
const room = document.getElementById('room');
const form = document.getElementById('say');
const text = document.getElementById('text');
const where = document.getElementById('where');
const trouble = document.getElementById('trouble');
const here = { as: main.dataset.as, in: main.dataset.in };
let thread = '';

async function follow() {
  let seen = '';
  for (;;) {
    try {
      const r = await fetch('room?' + new URLSearchParams({ ...here, seen }));
      if (r.status === 200) {
        const bottom = room.scrollHeight - room.scrollTop - room.clientHeight < 80;
        room.innerHTML = await r.text();
        seen = r.headers.get('Etag') || '';
        if (bottom || seen === '') room.scrollTop = room.scrollHeight;
      } else if (r.status !== 204) {
        throw new Error(r.statusText);
      }
    } catch (e) {
      await new Promise((again) => setTimeout(again, 1000));
    }
  }
}

async function act(fields) {
  trouble.textContent = '';
  const r = await fetch('do', { method: 'POST', body: new URLSearchParams({ ...here, ...fields }), headers: { 'X-Sandbox': '1' } });
  if (!r.ok) trouble.textContent = await r.text();
  return r.ok;
}

function reply(to) {
  thread = to;
  where.hidden = to === '';
  text.focus();
}

form.addEventListener('submit', async (e) => {
  e.preventDefault();
  const said = text.value;
  if (await act({ what: form.what.value, text: said, thread })) text.value = '';
});
document.getElementById('leave').addEventListener('click', () => reply(''));
for (const b of document.querySelectorAll('.sample')) {
  b.addEventListener('click', () => { text.value = b.textContent; text.focus(); });
}
room.addEventListener('click', (e) => {
  const b = e.target.closest('[data-do]');
  if (!b) return;
  if (b.dataset.do === 'thread') return reply(b.dataset.thread);
  const holder = b.closest('[data-message]');
  act({ what: b.dataset.do, action: b.dataset.key || '', message: holder ? holder.dataset.message : '' });
});
room.scrollTop = room.scrollHeight;
follow();

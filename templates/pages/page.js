// Everything here is a convenience: the pages also work without it.
'use strict'

const all = (selector) => [...document.querySelectorAll(selector)]

/** By its address: to reload a page that answered a form would send the form again. */
function loadAgain() {
  location.replace(location.pathname + location.search)
}

/** Counts down, and reloads the page at the end. */
function countDown(element) {
  const end = Date.now() + Number(element.dataset.countdown) * 1000
  const show = () => {
    const left = Math.max(0, Math.round((end - Date.now()) / 1000))
    const hours = Math.floor(left / 3600)
    const minutes = String(Math.floor((left % 3600) / 60)).padStart(2, '0')
    element.textContent = `${hours > 0 ? `${hours}:` : ''}${minutes}:${String(left % 60).padStart(2, '0')}`
    if (left > 0) return
    clearInterval(timer)
    loadAgain()
  }
  const timer = setInterval(show, 1000)
  show()
}

async function writeClipboard(text) {
  try {
    await navigator.clipboard.writeText(text)
  } catch {
    // Plain http on a local network has no clipboard interface, and browsers inside other apps may refuse it.
    copySelected(text)
  }
}

function copySelected(text) {
  const field = document.createElement('textarea')
  field.value = text
  field.readOnly = true
  field.className = 'off-screen'
  document.body.append(field)
  field.select()
  const done = document.execCommand('copy')
  field.remove()
  if (!done) throw new Error('the browser did not copy')
}

function copyOnPress(button) {
  const label = button.querySelector('[data-label]') ?? button
  const usual = label.textContent
  let timer = 0
  button.hidden = false
  button.addEventListener('click', async () => {
    try {
      await writeClipboard(button.dataset.copy)
    } catch {
      return
    }
    clearTimeout(timer)
    label.textContent = button.dataset.copied
    button.classList.add('is-done')
    for (const region of all('[data-announce]')) region.textContent = `${button.dataset.copied}: ${button.dataset.copy}`
    timer = setTimeout(() => {
      label.textContent = usual
      button.classList.remove('is-done')
    }, 2000)
  })
}

/** Polls the status until it changes: continues once paid, and reloads the page at any other change that it is to show. */
function poll(element) {
  const { poll: path, seen, late } = element.dataset
  let waitMs = 3000
  let timer = 0
  let isOver = false

  const ask = async () => {
    clearTimeout(timer)
    if (isOver) return
    if (!document.hidden) {
      try {
        const response = await fetch(path, { cache: 'no-store', headers: { accept: 'application/json' } })
        if (response.ok && hasChanged(await response.json(), response.headers.get('etag'))) return
      } catch {
        // Offline for a moment: poll again.
      }
      waitMs = Math.min(waitMs * 1.1, 15000)
    }
    timer = setTimeout(ask, waitMs)
  }

  const hasChanged = (state, tag) => {
    if (state.redirect_url) {
      for (const text of element.querySelectorAll('[data-state]')) text.textContent = element.dataset.paid
      element.classList.add('is-paid')
      location.replace(element.dataset.next ?? state.redirect_url)
    } else if ((state.expired && late === undefined) || (seen !== undefined && tag !== null && tag !== seen)) {
      loadAgain()
    } else {
      return false
    }
    isOver = true
    return true
  }

  document.addEventListener('visibilitychange', () => {
    waitMs = 3000
    void ask()
  })
  timer = setTimeout(ask, waitMs)
}

/** Says after so many seconds of waiting what to do now, unless the page has said something else meanwhile. */
function sayWhenSlow(element) {
  setTimeout(() => {
    if (element.classList.contains('is-paid')) return
    for (const text of element.querySelectorAll('[data-slow-text]')) text.textContent = text.dataset.slowText
    for (const link of element.querySelectorAll('[data-slow-link]')) link.hidden = false
    element.classList.add('is-slow')
  }, Number(element.dataset.slow) * 1000)
}

/** Disables the form after one press, so that one press is one payment. Going back in the browser enables it again. */
function pressOnce(form) {
  const buttons = [...form.querySelectorAll('button')]
  const setBusy = (isBusy, pressed) => {
    form.setAttribute('aria-busy', String(isBusy))
    for (const button of buttons) {
      button.disabled = isBusy
      button.classList.toggle('is-busy', isBusy && button === pressed)
    }
  }
  // After the submission, because the value of a disabled button is not sent.
  form.addEventListener('submit', (event) => setTimeout(() => setBusy(true, event.submitter)))
  addEventListener('pageshow', () => setBusy(false))
}

all('[data-countdown]').forEach(countDown)
all('[data-copy]').forEach(copyOnPress)
all('[data-poll]').forEach(poll)
all('[data-slow]').forEach(sayWhenSlow)
all('form[data-once]').forEach(pressOnce)

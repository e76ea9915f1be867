// Searches the reference, and keeps its index in view on a phone. Everything is readable without it.
'use strict'

const index = document.querySelector('.index')
const contents = index.querySelector('details')
const field = index.querySelector('input')
const found = index.querySelector('output')
const phone = matchMedia('(max-width: 64rem)')

/** The text from a heading up to the next one. */
function textOf(heading) {
  const parts = [heading.textContent]
  for (let next = heading.nextElementSibling; next && !/^H[1-3]$/.test(next.tagName); next = next.nextElementSibling)
    parts.push(next.textContent)
  return parts.join(' ').toLowerCase()
}

const entries = [...index.querySelectorAll('.contents a')].map((link) => ({
  link,
  item: link.parentElement,
  text: textOf(document.getElementById(decodeURIComponent(link.hash.slice(1)))),
}))

function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean)
  for (const { item, text } of entries) item.hidden = !words.every((word) => text.includes(word))
  const shown = entries.filter(({ item }) => !item.hidden).length
  found.textContent = words.length === 0 ? '' : shown === 1 ? '1 part' : `${shown} parts`
}

function foldOnPhone() {
  contents.open = !phone.matches
}

index.classList.add('is-live')
index.querySelector('.search').hidden = false
foldOnPhone()
phone.addEventListener('change', foldOnPhone)
field.addEventListener('input', search)
field.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') entries.find(({ item }) => !item.hidden)?.link.click()
  if (event.key !== 'Escape') return
  field.value = ''
  search()
  field.blur()
})
index.addEventListener('click', ({ target }) => {
  if (target.closest('.contents a')) foldOnPhone()
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.target.closest('input, textarea, select')) return
  event.preventDefault()
  contents.open = true
  field.focus()
})

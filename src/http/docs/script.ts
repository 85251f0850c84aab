/**
 * Script of the API reference. It adds a box that filters operations, schemas and error codes. The content security
 * policy allows the script by its hash.
 */
export const docsScript = `
const box = document.getElementById('filter')
const result = document.getElementById('found')
const entries = [...document.querySelectorAll('[data-entry]')].map(element => ({ element, text: element.dataset.entry.toLowerCase() }))
const links = [...document.querySelectorAll('nav li a')]
const sections = [...document.querySelectorAll('main > section')]
function filter() {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean)
  let count = 0
  for (const { element, text } of entries) {
    element.hidden = !words.every(word => text.includes(word))
    if (!element.hidden) count++
  }
  for (const section of sections) {
    section.hidden = words.length > 0 && !section.querySelector('[data-entry]:not([hidden])')
    const link = links.find(({ hash }) => hash === '#' + section.id)
    if (link) link.parentElement.hidden = section.hidden
  }
  result.textContent = words.length === 0 ? '' : count === 0 ? 'Nothing matches.' : count + ' found'
}
function reveal() {
  const target = document.getElementById(location.hash.slice(1))
  if (!target) return
  if (target.closest('[hidden]')) {
    box.value = ''
    filter()
  }
  const details = target.matches('[data-entry]') && target.querySelector('details')
  if (details) details.open = true
  target.scrollIntoView()
}
box.addEventListener('input', filter)
addEventListener('hashchange', reveal)
addEventListener('keydown', event => {
  if (event.key === '/' && event.target !== box) {
    event.preventDefault()
    box.focus()
  } else if (event.key === 'Escape' && event.target === box) {
    box.value = ''
    filter()
  }
})
box.parentElement.hidden = false
if (box.value) filter()
reveal()
`

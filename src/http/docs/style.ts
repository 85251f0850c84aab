/** Stylesheet of the API reference. The content security policy allows it by its hash. */
export const docsStyle = `
:root { color-scheme: light dark; --text: #1c2024; --dim: #5c626b; --line: #e2e5e9; --soft: #f6f7f9; --back: #fff;
  --link: #0b5fc1; --get: #0a6b4f; --post: #0b57a8; --patch: #8a5300; --delete: #b3261e }
@media (prefers-color-scheme: dark) { :root { --text: #e8eaed; --dim: #9aa0a8; --line: #2b3037; --soft: #181c21;
  --back: #101316; --link: #6cb2ff; --get: #4fd1a5; --post: #79b8ff; --patch: #f0b45b; --delete: #ff8a80 } }
* { box-sizing: border-box }
[hidden] { display: none !important }
html { scroll-padding-top: 1.2rem }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.6 system-ui, sans-serif;
  display: grid; grid-template-columns: 16rem minmax(0, 1fr) }
a { color: var(--link); text-decoration: none }
a:hover, a:focus-visible { text-decoration: underline }
code, pre, kbd { font: .92em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: break-word }
p code, dd code, td code { background: var(--soft); border-radius: 4px; padding: .05em .3em }
p code { white-space: nowrap }
pre { margin: .6rem 0; padding: .8rem 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--soft);
  white-space: pre-wrap }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.4rem 1.2rem; border-right: 1px solid var(--line);
  background: var(--soft); font-size: .93rem }
nav .home { display: block; margin-bottom: 1rem; font-size: 1.1rem; font-weight: 650; color: inherit }
nav small { font-weight: 400; color: var(--dim); font-size: .8rem; margin-left: .3rem }
nav ul { list-style: none; margin: 0 0 1rem; padding: 0 }
nav li a { display: block; padding: .16rem 0; color: inherit }
.filter { position: relative; margin-bottom: 1rem }
.filter input { width: 100%; padding: .45rem .7rem; border: 1px solid var(--line); border-radius: 8px; font: inherit;
  color: inherit; background: var(--back) }
.filter input:focus { outline: 2px solid var(--link); outline-offset: -1px }
.filter kbd { position: absolute; right: .6rem; top: .5rem; padding: 0 .4rem; border: 1px solid var(--line);
  border-radius: 4px; color: var(--dim); font-size: .78rem; pointer-events: none }
.filter input:focus + kbd, .filter input:not(:placeholder-shown) + kbd { display: none }
.filter output { display: block; margin-top: .3rem; color: var(--dim); font-size: .85rem }
.filter output:empty { display: none }
main { padding: 1.6rem 2.6rem 6rem; max-width: 66rem; min-width: 0 }
h1 { margin: 0 0 .3rem; font-size: 1.8rem; letter-spacing: -.015em }
h2 { margin: 3rem 0 .3rem; font-size: 1.3rem; letter-spacing: -.01em }
h2 + p { margin: 0 0 1rem; color: var(--dim) }
#authentication h2 { margin-top: 2rem }
#authentication h2 + p { color: inherit }
h4 { margin: 1.4rem 0 .4rem; font-size: .9rem }
h4 .dim { font-weight: 400 }
p { margin: .5rem 0 }
.lead { font-size: 1.05rem; color: var(--dim) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1.2rem; margin: 1rem 0 }
dt { font-weight: 600 } dd { margin: 0 }
ol { margin: .5rem 0; padding-left: 1.3rem }
table { border-collapse: collapse; width: 100%; font-size: .93rem }
th { text-align: left; font-weight: 500; color: var(--dim); font-size: .82rem }
th, td { padding: .42rem 1rem .42rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
tr:last-child td { border-bottom: 0 }
.scroll { overflow-x: auto }
.dim { color: var(--dim); font-size: .92em }
.method { flex: none; min-width: 4.6rem; padding: .1rem 0; border-radius: 5px; text-align: center;
  font: 650 .76rem/1.6 ui-monospace, Menlo, Consolas, monospace; color: var(--tone); border: 1px solid var(--tone) }
.get { --tone: var(--get) } .post { --tone: var(--post) } .patch { --tone: var(--patch) } .delete { --tone: var(--delete) }
.path { grid-column: 2; color: var(--dim); font-size: .85em }
.access::first-letter { text-transform: uppercase }
details { border: 1px solid var(--line); border-radius: 10px; margin: .55rem 0; background: var(--back) }
details[open] { box-shadow: 0 1px 5px rgb(0 0 0 / .07) }
details > summary { padding: .6rem .9rem; cursor: pointer; display: flex; gap: .3rem .8rem; flex-wrap: wrap;
  align-items: baseline; list-style: none; border-radius: 10px }
details > summary.operation { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 .9rem; align-items: center }
details > summary:hover { background: var(--soft) }
summary::-webkit-details-marker { display: none }
summary .about { margin-left: auto; color: var(--dim); font-size: .92rem }
details > div { padding: .3rem 1rem 1rem; border-top: 1px solid var(--line) }
:target > details { border-color: var(--link) }
tr:target td { background: var(--soft) }
.codes a { display: inline-block; margin: 0 .6rem .2rem 0 }
@media (max-width: 52rem) {
  body { display: block }
  nav { position: static; height: auto; border: 0; border-bottom: 1px solid var(--line); padding: 1rem }
  nav ul { columns: 2; column-gap: 1.2rem; margin-bottom: .6rem }
  nav li { break-inside: avoid }
  .filter kbd { display: none }
  main { padding: 1.2rem 1rem 4rem }
  summary .about { margin-left: 0; width: 100% }
  details > summary { padding: .6rem .7rem }
  .path { grid-column: 1 / 3; margin-top: .2rem }
  details > div { padding: .2rem .7rem .9rem }
  dl { display: block } dd { margin: 0 0 .7rem }
  thead { display: none }
  table, tbody, tr, td { display: block }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line) }
  tr:last-child { border-bottom: 0 }
  td { display: inline; padding: 0 .5rem 0 0; border: 0 }
  td:last-child { display: block }
}
@media print { nav { display: none } body { display: block } }
`

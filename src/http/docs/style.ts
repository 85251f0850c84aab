/** The one stylesheet of the reference; the page's policy allows it by its hash. */
export const style = `
:root { color-scheme: light dark; --text: #1c2024; --dim: #60646c; --line: #e0e3e7; --soft: #f6f7f9; --back: #fff;
  --link: #0b68cb; --get: #0a6b4f; --post: #0b5cad; --patch: #8a5300; --delete: #b3261e }
@media (prefers-color-scheme: dark) { :root { --text: #e8eaed; --dim: #9aa0a8; --line: #2c3138; --soft: #191d22;
  --back: #111417; --link: #6cb2ff; --get: #4fd1a5; --post: #79b8ff; --patch: #f0b45b; --delete: #ff8a80 } }
* { box-sizing: border-box }
html { scroll-behavior: smooth; scroll-padding-top: 1rem }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.55 system-ui, sans-serif;
  display: grid; grid-template-columns: 15rem minmax(0, 1fr) }
a { color: var(--link); text-decoration: none }
a:hover, a:focus-visible { text-decoration: underline }
code, .path { font: .92em/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.6rem 1.2rem; border-right: 1px solid var(--line);
  background: var(--soft) }
nav strong { display: block; font-size: 1.1rem; margin-bottom: .2rem }
nav p { margin: 0 0 1rem; color: var(--dim); font-size: .87rem }
nav ul { list-style: none; margin: 0; padding: 0 }
nav a { display: block; padding: .18rem 0; color: inherit }
main { padding: 1.6rem 2.4rem 6rem; max-width: 64rem; min-width: 0 }
h1 { margin: 0 0 .4rem; font-size: 1.7rem; letter-spacing: -.01em }
h2 { margin: 3rem 0 .8rem; padding-bottom: .35rem; border-bottom: 1px solid var(--line); font-size: 1.25rem }
h4 { margin: 1.3rem 0 .4rem; font-size: .78rem; text-transform: uppercase; letter-spacing: .06em; color: var(--dim) }
p { margin: .4rem 0 }
table { border-collapse: collapse; width: 100%; font-size: .93rem }
th { text-align: left; font-weight: 600; color: var(--dim); font-size: .8rem }
th, td { padding: .38rem .8rem .38rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
td { overflow-wrap: anywhere }
.scroll { overflow-x: auto }
.method { display: inline-block; min-width: 4.1rem; font: 700 .8rem/1.4 ui-monospace, Menlo, Consolas, monospace }
.get { color: var(--get) } .post { color: var(--post) } .patch { color: var(--patch) } .delete { color: var(--delete) }
.dim { color: var(--dim) }
details { border: 1px solid var(--line); border-radius: 8px; margin: .6rem 0; background: var(--back) }
details[open] { box-shadow: 0 1px 4px rgb(0 0 0 / .06) }
details > summary { padding: .6rem .9rem; cursor: pointer; display: flex; gap: .4rem .8rem; flex-wrap: wrap;
  align-items: baseline; list-style: none }
summary::-webkit-details-marker { display: none }
summary .about { margin-left: auto; color: var(--dim); font-size: .9rem }
details > div { padding: 0 .9rem 1rem; border-top: 1px solid var(--line) }
:target > details > summary, tr:target td { background: var(--soft) }
.codes a { display: inline-block; margin: 0 .6rem .2rem 0 }
@media (max-width: 50rem) { body { display: block } nav { position: static; height: auto; border: 0 }
  nav ul { columns: 2 } main { padding: 1.2rem } summary .about { margin-left: 0; width: 100% } }
@media print { nav { display: none } body { display: block } }
`

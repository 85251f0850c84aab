import { type Html, html } from './html.ts'

/**
 * Returns the introduction of the API reference: how to authenticate, and four first requests.
 *
 * @param operationIds  operations with a section on the page; others are shown without a link
 */
export function introductionHtml(operationIds: ReadonlySet<string>): Html {
  const to = (id: string, text: string) =>
    operationIds.has(id) ? html`<a href="#${id}">${text}</a>` : html`${text}`
  return html`<section id="authentication"><h2>Authentication</h2>
<p>By default there is no authentication, and the server accepts connections from its own machine only. If
<code>auth.mode</code> is set, send a credential as a bearer token with every request:</p>
<pre><code>curl -H "Authorization: Bearer $WB_API_KEY" http://127.0.0.1:8787/api/v1/workspaces</code></pre>
<dl>
<dt>API key</dt><dd>For programs. <code>wb keys create ci --role viewer</code> creates one, as does
${to('apiKeys.create', 'POST …/api-keys')}. The token is shown once.</dd>
<dt>Access token</dt><dd>Of your identity provider, as a JWT. A terminal signs in with <code>wb login</code>, a browser at
${to('auth.login', '/auth/login')}, which sets a session cookie.</dd>
<dt>Bootstrap token</dt><dd>Of the configuration. It creates the first key and reads ${to('operation.metrics', 'metrics')}.</dd>
</dl>
<p>${to('auth.config', 'GET /auth/config')} lists what this server accepts, and ${to('auth.me', 'GET /auth/me')} shows
who you are. Each operation below names the access that it needs.</p>
</section>
<section id="start"><h2>First requests</h2>
<ol>
<li>${to('workspaces.create', 'Create a workspace')}</li>
<li>${to('kb.create', 'Create a knowledge base')} in it</li>
<li>${to('documents.ingest', 'Ingest a text')} or ${to('documents.ingestFile', 'a file')}</li>
<li>${to('kb.search', 'Search')} the knowledge base</li>
</ol>
<p>Bodies are JSON in UTF-8. Lists return <code>items</code> and <code>nextCursor</code>, which is the <code>cursor</code> of the next
page. Every failure has one form, <a href="#schema-Error">Error</a>, and its <code>requestId</code> is also in the response
headers.</p>
</section>
`
}

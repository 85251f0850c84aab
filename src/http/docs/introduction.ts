import { type Html, html } from './html.ts'

/**
 * Returns the introduction of the API reference: how to authenticate, and the first requests to send.
 *
 * @param operationIds  operations that have a section on the page; other operations are not linked
 */
export function introductionHtml(operationIds: ReadonlySet<string>): Html {
  const linkTo = (id: string, text: string) =>
    operationIds.has(id) ? html`<a href="#${id}">${text}</a>` : html`${text}`
  return html`<section id="authentication"><h2>Authentication</h2>
<p>By default, there is no authentication, and the server accepts connections from the same machine only. If
<code>auth.mode</code> is set, send a credential as a bearer token with every request:</p>
<pre><code>curl -H "Authorization: Bearer $WB_API_KEY" http://127.0.0.1:8787/api/v1/workspaces</code></pre>
<dl>
<dt>API key</dt><dd>For programs. <code>wb keys create ci --role viewer</code> creates one, as does
${linkTo('apiKeys.create', 'POST …/api-keys')}. The token is shown once.</dd>
<dt>Access token</dt><dd>A JWT from your identity provider. To sign in, run <code>wb login</code> in a terminal, or open
${linkTo('auth.login', '/auth/login')} in a browser, which sets a session cookie.</dd>
<dt>Bootstrap token</dt><dd>For operators. It is set in the configuration, and can create the first key and read
${linkTo('operation.metrics', 'metrics')}.</dd>
</dl>
<p>${linkTo('auth.config', 'GET /auth/config')} lists the credentials that this server accepts, and
${linkTo('auth.me', 'GET /auth/me')} shows who you are. Each operation below shows the access that it requires.</p>
</section>
<section id="start"><h2>First requests</h2>
<ol>
<li>${linkTo('workspaces.create', 'Create a workspace')}</li>
<li>${linkTo('kb.create', 'Create a knowledge base')} in it</li>
<li>${linkTo('documents.ingest', 'Ingest a text')} or ${linkTo('documents.ingestFile', 'a file')}</li>
<li>${linkTo('kb.search', 'Search')} the knowledge base</li>
</ol>
<p>Bodies are JSON in UTF-8. Lists return <code>items</code> and <code>nextCursor</code>. To get the next page, send
<code>nextCursor</code> as <code>cursor</code>. All errors have the format <a href="#schema-Error">Error</a>. The <code>requestId</code> is also in the response
headers.</p>
</section>
`
}

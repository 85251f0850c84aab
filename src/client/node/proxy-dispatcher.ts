import type { Agent } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js'
import type { Proxies } from './network-options.ts'

/** undici's `index.js` adds this method to the prototype; the proxy agent needs it to open tunnels. */
Object.assign(Dispatcher.prototype, { connect })

/**
 * Creates a dispatcher that connects through proxies. Absent proxies are passed as empty strings, because
 * undici would otherwise read the environment.
 *
 * http requests are sent to the proxy without a tunnel, because many proxies allow tunnels only for https.
 */
export function createProxyDispatcher(
  options: Agent.Options,
  { http = '', https = '', except = '' }: Proxies,
): Dispatcher {
  const tls = typeof options.connect === 'object' ? options.connect : {}
  return new EnvHttpProxyAgent({
    ...options,
    httpProxy: http,
    httpsProxy: https,
    noProxy: except,
    proxyTunnel: false,
    requestTls: tls,
    proxyTls: tls,
  })
}

import type { Agent } from 'undici'
import connect from 'undici/lib/api/api-connect.js'
import Dispatcher from 'undici/lib/dispatcher/dispatcher.js'
import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js'
import type { Proxies } from './network-options.ts'

/** What `index.js` of undici does for all parts: the agent asks a proxy for a tunnel by this method. */
Object.assign(Dispatcher.prototype, { connect })

/**
 * Connections by way of proxies; what is left out of `proxies` is empty, as undici else reads the environment itself.
 * A request over http is handed to the proxy, as many let nobody tunnel to anything but https.
 */
export function byProxy(options: Agent.Options, { http = '', https = '', except = '' }: Proxies): Dispatcher {
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

/* Types for the undici modules that a command loads. The package has types only for its main module. */

declare module 'undici/lib/dispatcher/agent.js' {
  export { Agent as default } from 'undici'
}

declare module 'undici/lib/dispatcher/dispatcher.js' {
  export { Dispatcher as default } from 'undici'
}

declare module 'undici/lib/dispatcher/env-http-proxy-agent.js' {
  export { EnvHttpProxyAgent as default } from 'undici'
}

declare module 'undici/lib/interceptor/retry.js' {
  import { interceptors } from 'undici'
  export default interceptors.retry
}

declare module 'undici/lib/api/api-request.js' {
  import type { Dispatcher } from 'undici'
  /** Sends a request with the dispatcher that is its `this` value. */
  export default function request(
    this: Dispatcher,
    options: Dispatcher.RequestOptions,
    done: (error: Error | null, response: Dispatcher.ResponseData) => void,
  ): void
}

declare module 'undici/lib/api/api-connect.js' {
  import type { Dispatcher } from 'undici'

  const connect: Dispatcher['connect']
  export default connect
}

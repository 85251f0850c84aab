import type { Form, Route } from '../contract/route.ts'
import type { Shared } from './exchange.ts'
import type { Read } from './input.ts'

/** Time in milliseconds after which the caller of a request with a slow body is authorized again. */
export const confirmAfterMs = 1_000

/** Wraps a streamed body: the caller is authorized again while the handler reads it. */
export function withConfirmedBody(
  { clock }: Shared,
  { body }: Route,
  input: Read['input'],
  confirm: () => Promise<unknown>,
): Read['input'] {
  async function* confirmed(lines: AsyncIterable<unknown>) {
    let askedAt = clock.now()
    for await (const line of lines) {
      if (clock.now() - askedAt >= confirmAfterMs) {
        await confirm()
        askedAt = clock.now()
      }
      yield line
    }
  }
  const confirmedForm = (form: Form<object>): Form<object> => ({
    receive(use) {
      const askedAt = clock.now()
      return form.receive(async upload => {
        if (clock.now() - askedAt >= confirmAfterMs) await confirm()
        return use(upload)
      })
    },
  })
  if (body?.kind === 'ndjson') return { ...input, body: confirmed(input.body as AsyncIterable<unknown>) }
  if (body?.kind === 'multipart') return { ...input, body: confirmedForm(input.body as Form<object>) }
  return input
}

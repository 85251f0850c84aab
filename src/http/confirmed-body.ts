import type { PendingForm, Route } from '../contract/route.ts'
import type { AppContext } from './exchange.ts'
import type { ValidatedInput } from './input-reader.ts'

/** Time in milliseconds after which the caller of a request with a slow body is authorized again. */
export const confirmAfterMs = 1_000

/** Wraps a streamed body: the caller is authorized again while the handler reads it. */
export function withConfirmedBody(
  { clock }: AppContext,
  { body }: Route,
  input: ValidatedInput['input'],
  confirm: () => Promise<unknown>,
): ValidatedInput['input'] {
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
  const confirmedForm = (form: PendingForm<object>): PendingForm<object> => ({
    receive(use) {
      const askedAt = clock.now()
      return form.receive(async upload => {
        if (clock.now() - askedAt >= confirmAfterMs) await confirm()
        return use(upload)
      })
    },
  })
  if (body?.kind === 'ndjson') return { ...input, body: confirmed(input.body as AsyncIterable<unknown>) }
  if (body?.kind === 'multipart') return { ...input, body: confirmedForm(input.body as PendingForm<object>) }
  return input
}

import type { PendingForm, Route } from '../contract/route.ts'
import type { AppContext } from './exchange.ts'
import type { ValidatedInput } from './input-reader.ts'

/** Time in milliseconds after which the caller of a request with a slow body is authorized again. */
export const reauthorizeAfterMs = 1_000

/**
 * Wraps a body that the handler reads as it arrives. If reading takes longer than {@link reauthorizeAfterMs}, the
 * caller is authorized again before the handler gets more data.
 */
export function withReauthorization(
  { clock }: AppContext,
  { body }: Route,
  input: ValidatedInput['input'],
  reauthorize: () => Promise<unknown>,
): ValidatedInput['input'] {
  async function* readLines(lines: AsyncIterable<unknown>) {
    let checkedAt = clock.now()
    for await (const line of lines) {
      if (clock.now() - checkedAt >= reauthorizeAfterMs) {
        await reauthorize()
        checkedAt = clock.now()
      }
      yield line
    }
  }
  const wrapForm = (form: PendingForm<object>): PendingForm<object> => ({
    receive(use) {
      const checkedAt = clock.now()
      return form.receive(async upload => {
        if (clock.now() - checkedAt >= reauthorizeAfterMs) await reauthorize()
        return use(upload)
      })
    },
  })
  if (body?.kind === 'ndjson') return { ...input, body: readLines(input.body as AsyncIterable<unknown>) }
  if (body?.kind === 'multipart') return { ...input, body: wrapForm(input.body as PendingForm<object>) }
  return input
}

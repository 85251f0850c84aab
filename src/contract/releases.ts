import { z } from 'zod'
import { secretRef, timestamp } from './fields.ts'

/** What lets records use a secret reference, and where the secret may be sent. @see security decision 1 */
export const SecretRelease = z
  .object({
    releaseId: z.uuid(),
    ref: secretRef,
    host: z.string().meta({ description: 'with its port, unless that is the usual one of the scheme' }),
    workspaceId: z.uuid().nullable().meta({ description: 'null is every workspace' }),
    createdAt: timestamp,
  })
  .meta({ id: 'SecretRelease' })
export type SecretRelease = z.output<typeof SecretRelease>

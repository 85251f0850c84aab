import type { ErrorCode } from '../../../src/contract/errors.ts'
import type { Sent } from '../../harness/runtime.ts'

/** Makes a runtime respond with an error code, and returns the response. */
export type Provocation = () => Promise<Sent>

export type Provocations = Partial<Record<ErrorCode, Provocation>>

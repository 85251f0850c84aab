import type { ErrorCode } from '../../../src/contract/errors.ts'
import type { Sent } from '../../harness/runtime.ts'

/** Brings a runtime to answer with a code: the answer that came over the wire. */
export type Provocation = () => Promise<Sent>

export type Provocations = Partial<Record<ErrorCode, Provocation>>
